"""`checkmate-tf solvers`: the table of solvers."""

from __future__ import annotations

from solvers.registry import SOLVERS

_LINE = "{:<19} {:<16} {:<13} {}"


def run_solvers() -> int:
    """Print every solver's name, kind, the graphs it is valid on, what it needs and does."""
    print(_LINE.format("solver", "kind", "valid on", "needs"))
    for entry in SOLVERS.values():
        print(_LINE.format(entry.name, entry.kind, entry.valid_on, entry.needs).rstrip())
        print(f"    {entry.summary}")
    return 0
