"""`checkmate-tf memory`: what a step of a batch holds, and which batches devices hold."""

from __future__ import annotations

import argparse
from pathlib import Path

from checkmate_tf.cli.arguments import SOLVED, positive_number, whole_number
from checkmate_tf.cli.target import STEP, load_step
from solvers import parse_budget


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A step, its batch, and which devices."""
    parser.add_argument(
        "function",
        metavar="MODULE:MODEL",
        help=STEP,
    )
    parser.add_argument(
        "--batch-size", type=whole_number, metavar="N", help="default: that of the example"
    )
    parser.add_argument(
        "--device", choices=("CPU", "GPU"), help="also one that is not here (default: what is)"
    )
    parser.add_argument(
        "--device-memory",
        nargs="*",
        metavar="16GiB",
        help="of devices for which the largest batches are told (default: 8 to 80 GiB)",
    )
    parser.add_argument(
        "--overhead", metavar="20%", help="extra time; by default, of one more forward pass"
    )
    parser.add_argument(
        "--time-limit",
        type=positive_number,
        default=30.0,
        metavar="S",
        help="seconds for the largest batches, about (default: 30)",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="a .png, .pdf or .svg")


def run(arguments: argparse.Namespace) -> int:
    """Look, print, draw."""
    for each in arguments.device_memory or ():
        parse_budget(each)
    from checkmate_tf.breakdown.memory import CARDS, memory

    step, batch = load_step(arguments.function)
    sizes = CARDS if arguments.device_memory is None else tuple(arguments.device_memory)
    found = memory(
        step,
        arguments.batch_size,
        batch,
        device=arguments.device,
        device_memory=sizes,
        overhead=arguments.overhead,
        time_limit=arguments.time_limit,
    )
    print(found)
    if arguments.plot is not None:
        found.plot(arguments.plot)
        print(f"\n{arguments.plot}: what is held during the step, and by which layers")
    return SOLVED
