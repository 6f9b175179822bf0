"""`checkmate-tf doctor`: what is installed here, and whether steps train by a plan here."""

from __future__ import annotations

import argparse
from pathlib import Path

from checkmate_tf.cli.arguments import SOLVED
from checkmate_tf.doctor.examinations import EXAMINATIONS, examined
from checkmate_tf.doctor.finding import report_of
from checkmate_tf.progress import spoken_progress
from solvers.graph.files import write_whole

WRONG = 1
"""Exit status where something does not work."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the report goes besides."""
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="for the report, which is printed too"
    )


def run(arguments: argparse.Namespace) -> int:
    """Examine everything, and print what was found; 0 if all works, else 1."""
    findings = {}
    with spoken_progress("examining") as say:
        for name in EXAMINATIONS:
            say(name)
            findings[name] = examined(name)
    report = report_of(findings)
    print(report, end="")
    if arguments.output is not None:
        write_whole(arguments.output, report)
    return SOLVED if all(each.works for each in findings.values()) else WRONG
