"""Seconds from the first call of a Keras train step to its result: plain, first and second start.

    python -m experiments.readiness            # five processes of each kind
    python -m experiments.readiness --models GPT-24 DenseNet201 --processes 1
    python -m experiments.readiness --quick    # a small MobileNetV2, one process of each

"First" is a process that finds neither plans nor profiles of an earlier one; "second" finds those
of the first. The searches' own compiled functions are there in both, as after any earlier plan on
the machine. Every figure has fresh processes, and is the median of them; plain, first and second
take turns.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

from checkmate_tf.workloads.trial import run_trial
from solvers.graph.files import write_whole

STEPS = 2
"""The second of them is watched, as the first one is, and shows the peak without planning."""


@dataclass(frozen=True)
class Row:
    """A step that is started.

    Attributes:
        model: a name in `ALL_WORKLOADS` or `LARGE_WORKLOADS` of `checkmate_tf.workloads.models`.
        batch, side: of the images, or of the texts.
        share: of the plain step's memory beside variables and inputs, for the budget.
        goal: seconds that the first start may take more than the plain step.
    """

    model: str
    batch: int
    side: int
    share: float = 0.5
    goal: float = 20.0

    @property
    def name(self) -> str:
        """As in the table."""
        return f"{self.model} {self.batch}×{self.side}"


QUICK = (Row("MobileNetV2", 4, 64),)

ROWS = (
    Row("MobileNetV2", 16, 128, goal=10.0),
    Row("ResNet50", 16, 128, goal=20.0),
    Row("GPT-24", 4, 128, goal=40.0),  # 26,000 operations
    Row("DenseNet201", 4, 64, goal=60.0),  # 45,000
)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--processes", type=int, default=5, help="of each kind (default: 5)")
    models = [row.model for row in ROWS]
    parser.add_argument(
        "--models", nargs="+", choices=models, metavar="MODEL", help="only these: %(choices)s"
    )
    parser.add_argument("--quick", action="store_true", help="a small step, one process of each")
    parser.add_argument("--output", default="results/readiness.json", help="(default: %(default)s)")
    arguments = parser.parse_args()
    rows: tuple[Row, ...] = QUICK if arguments.quick else ROWS
    if arguments.models:
        rows = tuple(row for row in rows if row.model in arguments.models)
    count = 1 if arguments.quick else arguments.processes
    Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
    runs = [(row, number) for row in rows for number in range(count)]
    measured: dict[str, list[dict[str, Any]]] = {}
    console = Console(stderr=True)
    try:
        for row, _ in track(runs, "starting", console=console, transient=True):
            figures = dict(starts(row))
            measured.setdefault(row.name, []).append(figures)
            write_whole(arguments.output, json.dumps(measured, indent=1))
    except KeyboardInterrupt:
        console.print("Stopped; this is what was measured until then.")
    print_table([row for row in rows if row.name in measured], measured)


def starts(row: Row) -> Iterator[tuple[str, dict[str, Any]]]:
    """The figures of a plain, a first and a second start."""
    size: dict[str, Any] = {"batch": row.batch, "side": row.side}
    plain = run_trial(row.model, STEPS, **size)
    yield "plain", plain
    resident, peak = plain["resident"], max(plain["peaks"])
    budget = int(resident + row.share * (peak - resident))
    with tempfile.TemporaryDirectory() as cache:
        for name in ("first", "second"):
            yield name, run_trial(row.model, STEPS, budget, cache=Path(cache), **size)


def print_table(rows: Sequence[Row], measured: dict[str, list[dict[str, Any]]]) -> None:
    """Medians, where the time of the first start goes, and what the plan is worth.

    "extra" is the planned extra time, "used" the share of the budget that a step holds, "MiB" what
    planning adds to the process's own peak on the host.
    """
    table = Table(title="Seconds to the first step's result", title_justify="left")
    for heading in ("step", "plain", "first", "more", "goal", "second", "more"):
        table.add_column(heading, justify="left" if heading == "step" else "right")
    phases = Table(
        title="The first start", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    names = ("trace", "extract", "solve", "trials", "emit")
    for heading in ("step", *names, "extra %", "used", "MiB"):
        phases.add_column(heading, justify="left" if heading == "step" else "right", no_wrap=True)
    for row in rows:
        of = measured[row.name]
        plain, first, second = (
            median(each[kind]["ready"] for each in of) for kind in ("plain", "first", "second")
        )
        seconds = (plain, first, first - plain, row.goal, second, second - plain)
        table.add_row(row.name, *(f"{each:.1f}" for each in seconds))
        parts = [
            median(each["first"]["plan"]["seconds"].get(name, 0.0) for each in of) for name in names
        ]
        overhead = median(each["first"]["plan"]["overhead"] for each in of)
        used = median(each["first"]["peaks"][-1] / each["first"]["plan"]["budget"] for each in of)
        more = median(each["first"]["host_peak"] - each["plain"]["host_peak"] for each in of)
        phases.add_row(
            row.name,
            *(f"{each:.1f}" for each in parts),
            f"{overhead:.1%}"[:-1],
            f"{used:.2f}",
            f"{more / 2**20:.0f}",
        )
    console = Console()
    console.print(table)
    console.print(phases)


if __name__ == "__main__":
    main()
