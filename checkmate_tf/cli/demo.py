"""Train MobileNetV2 on handwritten digits within a memory budget, where the plain step fails.

    make demo        # or: checkmate-tf demo, or: checkmate-tf demo --quick

Four processes: the plain step, and the rematerialized one within a budget; then both under an
allocator limit between their two peaks, which is a GPU's memory wall on any machine. There the
rematerialized one is given no number: what the device can hold is its budget. Graph
rewrites and oneDNN are off, so that the losses can be compared to the last digit, and because
TensorFlow 2.21 with oneDNN on a CPU crashes where it should raise ResourceExhaustedError.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from checkmate_tf.progress import counted_progress
from checkmate_tf.workloads.trial import run_trial
from solvers import CheckmateError, format_bytes

MODEL = "MobileNetV2"
SHARE = 0.5
STEPS = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How long, and where the picture goes."""
    parser.add_argument("--quick", action="store_true", help="fewer steps")
    parser.add_argument("--picture", type=Path, default="demo.png", metavar="FILE")


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; 0 if the rematerialized step kept its budget and trained on, else 1."""
    if find_spec("sklearn") is None:
        raise CheckmateError(
            "package-missing",
            "the demo trains on the handwritten digits of scikit-learn, which is not installed: "
            "pip install scikit-learn",
        )
    with counted_progress("trainings", 4) as show:
        outcome = train_four_times(show, 4 if arguments.quick else STEPS)
    print_tables(outcome)
    draw(outcome, arguments.picture)
    print(f"Both memory timelines: {arguments.picture}")
    kept = max(outcome.ours["peaks"]) <= outcome.budget and "losses" in outcome.ours_limited
    return 0 if kept else 1


@dataclass(frozen=True)
class Outcome:
    """The figures of the four trainings.

    Attributes:
        plain, ours: without a limit.
        plain_limited, ours_limited: under the limit.
        budget: bytes that the rematerialized step was given.
        limit: bytes that the allocator was limited to in the last two.
    """

    plain: dict[str, Any]
    ours: dict[str, Any]
    plain_limited: dict[str, Any]
    ours_limited: dict[str, Any]
    budget: int
    limit: int


def train_four_times(show: Callable[[int, str], None], steps: int) -> Outcome:
    """The plain step and ours, without a limit and with one, each in a process of its own."""

    def train(number: int, what: str, **options: Any) -> dict[str, Any]:
        show(number, what)
        figures = run_trial(MODEL, steps, time_limit=30, one_dnn=False, exact=True, **options)
        if "losses" not in figures and "limit_bytes" not in options:
            raise CheckmateError(
                "demo-not-trained",
                f"{MODEL}, {what}: {_ending(figures)}, so there is nothing to show; end other "
                "programs, which hold memory or take time, and run the demo again",
            )
        return figures

    plain = train(0, "the plain step")
    resident, peak = plain["resident"], max(plain["peaks"])
    budget = int(resident + SHARE * (peak - resident))
    ours = train(1, f"rematerialized, within {format_bytes(budget)}", budget=budget)
    # The allocator's pieces leave gaps that a peak does not count, so not too near to either.
    limit = (max(ours["peaks"]) + peak) // 2
    limited = f"with a limit of {format_bytes(limit)}"
    plain_limited = train(2, f"the plain step {limited}", limit_bytes=limit)
    ours_limited = train(3, f"rematerialized {limited}", limit_bytes=limit, budget="device")
    return Outcome(plain, ours, plain_limited, ours_limited, budget, limit)


def print_tables(outcome: Outcome) -> None:
    """The losses side by side, then memory and time."""
    pair = (outcome.plain, outcome.ours)
    losses = Table(Column("step", justify="right"), *_both(), title="Loss, step by step")
    for step, both in enumerate(zip(*(each["losses"] for each in pair), strict=True)):
        losses.add_row(str(step + 1), *(f"{loss:.5f}" for loss in both))
    table = Table("", *_both(), title=f"{MODEL}, budget {format_bytes(outcome.budget)}")
    table.add_row("peak, measured", *(format_bytes(max(each["peaks"])) for each in pair))
    table.add_row("held before the step", *(format_bytes(each["resident"]) for each in pair))
    times = (f"{1000 * median(each['seconds'][2:]):.0f} ms" for each in pair)
    table.add_row("step time, median", *times)
    limited = (outcome.plain_limited, outcome.ours_limited)
    table.add_row(f"limited to {format_bytes(outcome.limit)}", *map(_ending, limited))
    Console().print(losses, table)
    if "losses" in outcome.ours_limited:
        plan = outcome.ours_limited["plan"]
        print(
            "Under the limit one more line, checkmate_tf.rematerialize(step), and no\nnumber: "
            f"at most {format_bytes(max(outcome.ours_limited['peaks']))} of "
            f"{format_bytes(plan['budget'])}, {100 * plan['planned_overhead']:.1f} % more time "
            "planned."
        )


def _both() -> list[Column]:
    names = ("plain", "rematerialized")
    return [Column(name, justify="right", overflow="fold") for name in names]


def _ending(figures: dict[str, Any]) -> str:
    if "losses" not in figures:
        return "no plan found" if figures.get("too_small") else "ResourceExhaustedError"
    return f"trained {len(figures['losses'])} steps"


def draw(outcome: Outcome, path: Path) -> None:
    """Memory over one step, before and after, with the budget and the measured peaks."""
    from checkmate_tf.cli.plots import draw_timelines

    plan = outcome.ours["plan"]
    draw_timelines(
        path,
        timelines={
            "input order, nothing recomputed": plan["input_order_timeline"],
            "rematerialized": plan["timeline"],
        },
        measured={
            "plain step": max(outcome.plain["peaks"]),
            "rematerialized": max(outcome.ours["peaks"]),
        },
        budget=outcome.budget,
        title=f"{MODEL}: memory during one training step",
    )
