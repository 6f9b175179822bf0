"""`checkmate-tf explain`: why a layer is kept or recomputed by a plan."""

from __future__ import annotations

import argparse
from pathlib import Path

from checkmate_tf.cli.arguments import SOLVED
from checkmate_tf.plans.plan import Plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A plan, and a layer."""
    parser.add_argument(
        "plan",
        type=Path,
        metavar="PLAN.json",
        help="of `checkmate-tf plan` or `solve`, or of step.plan.save",
    )
    parser.add_argument(
        "layer", metavar="LAYER", help="as `checkmate-tf show` lists them, or the name of a node"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what becomes of the layer, and why."""
    print(Plan.load(arguments.plan).explain(arguments.layer))
    return SOLVED
