"""`checkmate-tf plans`: list and clear the plans that were kept."""

from __future__ import annotations

import argparse

from rich.table import Table

from checkmate_tf.cli.arguments import SOLVED
from checkmate_tf.cli.consoles import table_console
from checkmate_tf.planning.kept.plan_store import (
    VARIABLE,
    Entry,
    plan_files,
    plan_folder,
    read_entry,
    remove,
)
from solvers import CheckmateError, format_bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to do besides listing."""
    parser.add_argument("--clear", action="store_true", help="delete all plans that were kept")


def run(arguments: argparse.Namespace) -> int:
    """List the kept plans, the one that was used last first, or delete them."""
    folder = plan_folder()
    if folder is None:
        print(f"no plans are kept: {VARIABLE} says so")
        return SOLVED
    files = plan_files()
    if not files:
        print(f"no plans in {folder}")
        return SOLVED
    if arguments.clear:
        for path in files:
            remove(path)
            print(f"{path}: deleted")
        return SOLVED
    table = Table(box=None, pad_edge=False)
    for heading in ("step", "budget", "peak", "extra", "TensorFlow"):
        table.add_column(heading, no_wrap=heading != "step")
    table.add_column("file", overflow="fold")
    for path in files:
        try:
            table.add_row(*_row(read_entry(path)), path.name)
        except (CheckmateError, KeyError, TypeError):
            table.add_row("broken", "–", "–", "–", "–", path.name)
    table_console().print(table)
    print(f"{len(files)} plan{'s' * (len(files) > 1)} in {folder}")
    return SOLVED


def _row(entry: Entry) -> tuple[str, ...]:
    document, key = entry.document, entry.key
    asked, budget = str(key["budget"]), format_bytes(document["budget"])
    step = document["step"]
    return (
        document["graph"],
        budget if asked.isdigit() else f"{budget} ({asked})",
        format_bytes(step["measured_peak"] or step["predicted_peak"]),
        f"{100 * document['kept']['overhead']:.1f} %",
        key["tensorflow"],
    )
