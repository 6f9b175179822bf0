"""`checkmate-tf largest-batch`: the largest batch of a step that fits some bytes."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from checkmate_tf.cli.arguments import INFEASIBLE, SOLVED
from checkmate_tf.cli.target import add_planning_arguments, cost_model, load_step
from solvers import parse_budget
from solvers.graph.files import write_whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A step, bytes, and what else is known of the device."""
    parser.add_argument(
        "function",
        metavar="MODULE:FUNCTION",
        help="a tf.function whose input_signature leaves the batch open (None), or a function "
        "without arguments that returns one, or (step or compiled Keras model, example batch)",
    )
    parser.add_argument("--budget", metavar="16GiB|BYTES", help="or a share of --device-memory")
    parser.add_argument(
        "--overhead", metavar="20%", help="extra time; by default, of one more forward pass"
    )
    parser.add_argument(
        "--device-memory", metavar="16GiB", help="plan for a device that is not there"
    )
    add_planning_arguments(parser)
    parser.add_argument("--output", type=Path, metavar="PLAN.json", help="the plan as a file")


def run(arguments: argparse.Namespace) -> int:
    """Search, print, write; the exit status."""
    for each in (arguments.budget, arguments.device_memory):
        if each is not None:
            parse_budget(each)
    from checkmate_tf.batches.plans import NoBatchError
    from checkmate_tf.sizing.largest_batch import largest_batch

    costs = cost_model(arguments, elsewhere=arguments.device_memory is not None)
    step, batch = load_step(arguments.function)
    try:
        found = largest_batch(
            step,
            arguments.budget,
            batch,
            overhead=arguments.overhead,
            device_memory=arguments.device_memory,
            costs=costs,
            order=arguments.order,
            time_limit=arguments.time_limit,
            trial_run=arguments.trial_run,
        )
    except NoBatchError as error:
        print(f"checkmate-tf: {error}", file=sys.stderr)
        return INFEASIBLE
    print(found)
    if arguments.output is not None:
        contents = found.plan.to_json() | {"batch_size": found.batch_size}
        write_whole(arguments.output, json.dumps(contents) + "\n")
    return SOLVED
