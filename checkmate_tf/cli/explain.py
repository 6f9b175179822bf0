"""`checkmate-tf explain`: why a layer is kept or recomputed by a plan."""

from __future__ import annotations

import argparse

from checkmate_tf.cli.arguments import SOLVED, add_plan_file
from checkmate_tf.plans.plan import Plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A plan, and a layer."""
    add_plan_file(parser)
    parser.add_argument(
        "layer", metavar="LAYER", help="as `checkmate-tf show` lists them, or the name of a node"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what becomes of the layer, and why."""
    print(Plan.load(arguments.plan).explain(arguments.layer))
    return SOLVED
