"""`checkmate-tf extract`: save the computation graph of a train step."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from checkmate_tf.cli.arguments import SOLVED
from checkmate_tf.cli.target import add_costs, add_step, cost_model, load_program
from checkmate_tf.progress import measuring_progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A step, and what its graph is made of."""
    add_step(parser)
    parser.add_argument(
        "--output", type=Path, required=True, metavar="FILE", help="the graph as JSON"
    )
    add_costs(parser)


def run(arguments: argparse.Namespace) -> int:
    """Save the computation graph of MODULE:FUNCTION, with costs by a named model."""
    from checkmate_tf.graph.cost_models import step_costs
    from checkmate_tf.graph.extraction import extract_program

    costs = cost_model(arguments)
    program = load_program(arguments.function, arguments.batch_size)
    with measuring_progress() as progress:
        step = step_costs(costs, program, progress)
    graph = extract_program(program, step.model).graph
    graph.save(arguments.output)
    print(f"{arguments.output}: {len(graph)} nodes, {len(graph.edges)} edges")
    for note in step.notes:
        print(f"note: {note}", file=sys.stderr)
    return SOLVED
