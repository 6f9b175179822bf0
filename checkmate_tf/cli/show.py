"""`checkmate-tf show`: a plan.json as text, and drawn."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from checkmate_tf.cli.arguments import SOLVED, add_plan_file
from checkmate_tf.plans.documents import read
from checkmate_tf.plans.line import step_in_words
from checkmate_tf.plans.plan import Plan
from solvers.graph.files import read_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A plan, and where its picture goes."""
    add_plan_file(parser)
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="a .png, .pdf or .svg: memory over the step by layer, and the schedule",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the plan; draw it where asked to."""
    plan = Plan.load(arguments.plan)
    document = read_json(arguments.plan)
    print(f"{'step':<22}{step_in_words(document)}")
    print(f"{'file':<22}{_kept(document.get('kept'))}")
    print(plan)
    if arguments.plot is not None:
        plan.plot(arguments.plot)
        print(f"\n{arguments.plot}: memory by layer, and the schedule")
    return SOLVED


def _kept(facts: Any) -> str:
    """Whether a plan.json is one that was kept, and what was known of it then."""
    if facts is None:
        return "a plan by itself, not one of those that are kept"
    budget = read(read(facts, "key", dict), "budget", str)
    within = "within" if read(facts, "keeps", bool) else "likely to need more than"
    return f"kept for budget {budget}, {within} it when it was made"
