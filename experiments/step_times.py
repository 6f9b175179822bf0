"""What makes a step slower: what waits, and what is computed again.

    python -m experiments.step_times            # seven models, oneDNN on and off; 20 minutes
    python -m experiments.step_times --quick    # a small U-Net, two turns

Three steps of one model take turns: the plain one, ours with nothing recomputed, and ours within
half of what the plain step adds. In ours an operation waits for what frees its bytes; the plain
step runs whatever is ready. Every row is a fresh process.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from checkmate_tf.workloads.models import ALL_WORKLOADS
from checkmate_tf.workloads.trial import run_trial
from solvers.graph.files import write_whole

SHARE, TURNS = 0.5, 10
STEPS = 10
"""Before the turns: so many are watched, and beside other steps one may hold more."""

Row = dict[str, Any]
"""A model with oneDNN on or off, and its `seconds` by step and `planned` extra time, as a share of
the plain step, if the budget can be kept."""


def main(command_line: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", nargs="+", default=list(ALL_WORKLOADS), choices=ALL_WORKLOADS)
    parser.add_argument("--one-dnn", nargs="+", type=int, default=[1, 0], choices=[0, 1])
    parser.add_argument("--turns", type=int, default=TURNS, help="(default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="a small U-Net, two turns")
    parser.add_argument(
        "--output", default="results/step_times.json", help="(default: %(default)s)"
    )
    arguments = parser.parse_args(command_line)
    size: dict[str, Any] = {}
    if arguments.quick:
        arguments.models, arguments.one_dnn, arguments.turns = ["U-Net"], [1], 2
        size = {"side": 64}
    runs = [(name, on) for on in arguments.one_dnn for name in arguments.models]
    Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    console = Console(stderr=True)
    try:
        for name, on in track(runs, "training", console=console, transient=True):
            rows.append(measured(name, on, arguments.turns, **size))
            write_whole(arguments.output, json.dumps(rows, indent=1))
    except KeyboardInterrupt:
        console.print("Stopped; this is what was measured until then.")
    Console(width=80).print(as_table(rows))


def measured(name: str, one_dnn: int, turns: int, **options: Any) -> Row:
    """The row of one model."""
    plain = run_trial(name, STEPS, one_dnn=bool(one_dnn), **options)
    budget = int(plain["resident"] + SHARE * (max(plain["peaks"]) - plain["resident"]))
    ours = run_trial(
        name,
        STEPS,
        budget=budget,
        one_dnn=bool(one_dnn),
        compare_times=turns,
        compare_unchanged=True,
        **options,
    )
    row: Row = {"model": name, "one_dnn": one_dnn}
    if "too_small" in ours:
        return row
    seconds = ours["compared_seconds"]
    planned = ours["plan"]["planned_overhead"]
    return {**row, "seconds": seconds, "planned": planned}


def times_plain(row: Row, step: str) -> float:
    """A step's time over that of the plain step, in the median of the turns.

    Neighbours are compared, since a shared machine changes its speed.
    """
    pairs = zip(row["seconds"][step], row["seconds"]["plain"], strict=True)
    return float(median(one / plain for one, plain in pairs))


def beyond_plan(row: Row) -> float:
    """The time of a step within the budget over what was planned for it."""
    return times_plain(row, "ours") / float(1 + row["planned"])


def as_table(rows: Sequence[Row]) -> Table:
    """Times as multiples of the plain step's, and their medians."""
    table = Table(title=f"Step times within {SHARE:.0%} of the memory, as multiples of plain ones")
    table.add_column("model")
    for heading in ("oneDNN", "plain, s", "unchanged", "planned", "within it", "ratio"):
        table.add_column(heading, justify="right")
    for row in rows:
        if "seconds" not in row:
            table.add_row(row["model"], "on" if row["one_dnn"] else "off", "", "", "", "too small")
            continue
        table.add_row(
            row["model"],
            "on" if row["one_dnn"] else "off",
            f"{median(row['seconds']['plain']):.2f}",
            f"{times_plain(row, 'unchanged'):.3f}",
            f"{1 + row['planned']:.3f}",
            f"{times_plain(row, 'ours'):.3f}",
            f"{beyond_plan(row):.3f}",
        )
    kept = [row for row in rows if "seconds" in row]
    for on in sorted({row["one_dnn"] for row in kept}, reverse=True):
        of = [row for row in kept if row["one_dnn"] == on]
        table.add_row(
            "median",
            "on" if on else "off",
            "",
            f"{median(times_plain(row, 'unchanged') for row in of):.3f}",
            f"{1 + median(row['planned'] for row in of):.3f}",
            f"{median(times_plain(row, 'ours') for row in of):.3f}",
            f"{median(map(beyond_plan, of)):.3f}",
        )
    return table


if __name__ == "__main__":
    main()
