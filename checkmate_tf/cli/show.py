"""`checkmate-tf show`: a plan.json as text, and drawn."""

from __future__ import annotations

import argparse
from pathlib import Path

from checkmate_tf.cli.arguments import SOLVED, check_picture
from checkmate_tf.plans.plan import Plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A plan, and where its picture goes."""
    parser.add_argument(
        "plan",
        type=Path,
        metavar="PLAN.json",
        help="of `checkmate-tf plan` or `solve`, or of step.plan.save",
    )
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="a .png, .pdf or .svg: memory over the step by layer, and the schedule",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the plan; draw it where asked to."""
    if arguments.plot is not None:
        check_picture(arguments.plot)
    plan = Plan.load(arguments.plan)
    print(f"{'step':<22}{plan.graph.name}")
    print(plan)
    if arguments.plot is not None:
        plan.plot(arguments.plot)
        print(f"\n{arguments.plot}: memory by layer, and the schedule")
    return SOLVED
