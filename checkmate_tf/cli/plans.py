"""`checkmate-tf plans`: list and clear the plans that were kept."""

from __future__ import annotations

import argparse
from datetime import datetime

from checkmate_tf.cli.arguments import SOLVED
from checkmate_tf.planning.kept.plan_store import (
    VARIABLE,
    Entry,
    plan_files,
    plan_folder,
    read_entry,
    remove,
)
from checkmate_tf.plans.line import step_in_words
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
    for path in files:
        try:
            lines = _lines(read_entry(path))
        except (CheckmateError, KeyError, TypeError):
            lines = ["broken"]
        print("\n    ".join([*lines, path.name]))
    print(f"{len(files)} plan{'s' * (len(files) > 1)} in {folder}")
    return SOLVED


def _lines(entry: Entry) -> list[str]:
    """What tells a plan from others."""
    document, key = entry.document, entry.key
    asked, budget = str(key["budget"]), format_bytes(document["budget"])
    step = document["step"]
    timed = document["kept"].get("measured_overhead") if step.get("timed") == "in turn" else None
    measured = "" if timed is None else f" planned, {100 * timed:.1f} % measured"
    used = datetime.fromtimestamp(entry.path.stat().st_mtime)
    facts = [
        budget if asked.isdigit() else f"{budget} ({asked})",
        f"peak {format_bytes(step['measured_peak'] or step['predicted_peak'])}",
        f"{100 * document['kept']['overhead']:.1f} % extra{measured}",
        f"used {used:%Y-%m-%d %H:%M}",
    ]
    return [f"{step_in_words(document)}, TensorFlow {key['tensorflow']}", ", ".join(facts)]
