"""Where tables are printed, and what is done where the terminal cannot show a sign."""

from __future__ import annotations

import io
import sys

from rich.console import Console


def table_console(width: int | None = None) -> Console:
    """Prints names as they are: a graph called "net [train]" says nothing about colours."""
    return Console(width=width, highlight=False, markup=False, emoji=False)


def replace_unknown_signs() -> None:
    """Let what the terminal's encoding does not have be printed as "?", not end the command."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
