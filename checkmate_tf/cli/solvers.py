"""`checkmate-tf solvers`: the table of solvers."""

from __future__ import annotations

import argparse

from checkmate_tf.cli.arguments import SOLVED, add_solver_file
from solvers.api import SOLVERS

_LINE = "{:<19} {:<16} {:<13} {}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What else there may be to list."""
    add_solver_file(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print every solver's name, kind, the graphs it is valid on, what it needs and does."""
    print(_LINE.format("solver", "kind", "valid on", "needs"))
    for entry in SOLVERS.values():
        print(_LINE.format(entry.name, entry.kind, entry.valid_on, entry.needs).rstrip())
        print(f"    {entry.summary}")
    return SOLVED
