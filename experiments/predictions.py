"""What plans say beside what was measured: peaks and extra time, seven models, four budgets each.

    python -m experiments.predictions           # goes on where an earlier run was stopped
    python -m experiments.predictions --quick   # one small U-Net, one budget

Every row is a fresh process that trains ten steps. The budget is resident + share × (plain peak −
resident), where resident is what the allocator holds before the step. Costs are measured
(costs="profile"). Extra time is of plain and rematerialized steps in turn, after those ten. The
rows go into a CSV file as they come, and a picture is drawn of them.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from checkmate_tf.workloads.models import ALL_WORKLOADS
from checkmate_tf.workloads.trial import run_trial
from solvers.graph.files import write_whole

SHARES = (0.9, 0.75, 0.6, 0.5)
STEPS, TURNS = 10, 6
OUTPUT = Path(__file__).with_suffix(".csv")
QUICK_OUTPUT = Path("results/predictions.csv")

Row = dict[str, Any]
"""A line of the CSV file; `peak` and what follows it are empty where the budget can't be kept."""


def main(command_line: Sequence[str] | None = None) -> None:
    """Run what is missing in the CSV file; print its table and draw its picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", nargs="+", default=list(ALL_WORKLOADS))
    parser.add_argument("--one-dnn", nargs="+", type=int, default=[1, 0], choices=[0, 1])
    parser.add_argument("--shares", nargs="+", type=float, default=SHARES)
    parser.add_argument("--time-limit", type=float, default=40.0, help="of the solver, in seconds")
    parser.add_argument("--quick", action="store_true", help="a small U-Net at one budget")
    parser.add_argument("--output", type=Path, metavar="FILE.csv", help="written as rows come")
    arguments = parser.parse_args(command_line)
    arguments.output = arguments.output or (QUICK_OUTPUT if arguments.quick else OUTPUT)
    size = {}
    if arguments.quick:
        arguments.models, arguments.one_dnn, arguments.shares = ["U-Net"], [1], [0.75]
        size = {"side": 64}
    rows = read_rows(arguments.output)
    done = {(row["model"], row["one_dnn"], row["share"]) for row in rows}
    runs = [
        (name, on, [share for share in arguments.shares if (name, on, share) not in done])
        for on in arguments.one_dnn
        for name in arguments.models
    ]
    console = Console(stderr=True)
    for name, on, shares in track(runs, "training", console=console, transient=True):
        for row in measure_rows(name, on, shares, time_limit=arguments.time_limit, **size):
            rows.append(row)
            write_rows(arguments.output, rows)
    Console().print(as_table(rows))
    print(summary(rows))
    draw(rows, arguments.output.with_suffix(".png"))


def measure_rows(name: str, one_dnn: int, shares: list[float], **options: Any) -> Iterator[Row]:
    """One row for every share of the plain step's memory."""
    if not shares:
        return
    plain = run_trial(name, 5, one_dnn=bool(one_dnn), **options)
    resident, plain_peak = plain["resident"], max(plain["peaks"][1:])
    for share in shares:
        budget = int(resident + share * (plain_peak - resident))
        ours = run_trial(
            name,
            STEPS,
            budget=budget,
            one_dnn=bool(one_dnn),
            compare_times=TURNS,
            costs="profile",
            **options,
        )
        row = {"model": name, "one_dnn": one_dnn, "share": share, "budget": budget}
        yield row if "too_small" in ours else row | _measured(ours)


def _measured(figures: Row) -> Row:
    seconds = {label: median(each) for label, each in figures["compared_seconds"].items()}
    return {
        "peak": max(figures["peaks"]),
        "predicted_peak": figures["plan"]["predicted_peak"],
        "extra": seconds["ours"] / seconds["plain"] - 1,
        "predicted_extra": figures["plan"]["overhead"],
        "plain_seconds": seconds["plain"],
        "ready": figures["ready"],
    }


_COLUMNS = {
    "model": str, "one_dnn": int, "share": float, "budget": int, "peak": int,
    "predicted_peak": int, "extra": float, "predicted_extra": float, "plain_seconds": float,
    "ready": float,
}  # fmt: skip


def read_rows(path: Path) -> list[Row]:
    """The rows of a CSV file, none if it is not there."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {column: _COLUMNS[column](value) for column, value in line.items() if value}
            for line in csv.DictReader(file)
        ]


def write_rows(path: Path, rows: list[Row]) -> None:
    """Replace the CSV file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(_COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: f"{each:.4g}" if isinstance(each, float) else each for key, each in row.items()}
        for row in rows
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.getvalue())


def peak_error(row: Row) -> float:
    """How far the predicted peak is from the measured one, as a share of the latter."""
    return float(row["predicted_peak"] / row["peak"] - 1)


def as_table(rows: list[Row]) -> Table:
    """The rows in megabytes and percent."""
    table = Table(title="Plans beside what was measured", box=None, pad_edge=False)
    table.add_column("model")
    for heading in ("1DNN", "share", "budget", "peak", "off by", "extra", "planned", "ready"):
        table.add_column(heading, justify="right")
    for row in rows:
        cells = [row["model"], "on" if row["one_dnn"] else "off", f"{100 * row['share']:.0f} %"]
        cells += [f"{row['budget'] / 1e6:.0f}"]
        if "peak" in row:
            cells += [
                f"{row['peak'] / 1e6:.0f}{'' if row['peak'] <= row['budget'] else ' OVER'}",
                f"{100 * peak_error(row):+.1f} %",
                f"{100 * row['extra']:.1f} %",
                f"{100 * row['predicted_extra']:.1f} %",
                f"{row['ready']:.0f} s",
            ]
        else:
            cells.append("too small")
        table.add_row(*cells)
    return table


def summary(rows: list[Row]) -> str:
    """The rows in one sentence."""
    kept = [row for row in rows if "peak" in row]
    if not kept:
        return f"{len(rows)} budgets, none of which can be kept"
    errors = [abs(peak_error(row)) for row in kept]
    apart = [abs(row["extra"] - row["predicted_extra"]) for row in kept]
    within = sum(row["peak"] <= row["budget"] for row in kept)
    return (
        f"{len(rows)} budgets, {len(rows) - len(kept)} too small; the measured peak is within "
        f"{within} of {len(kept)}. Predicted peaks are off by {100 * median(errors):.1f} % in the "
        f"median and {100 * max(errors):.1f} % at worst, extra time by {100 * median(apart):.1f} "
        "points in the median."
    )


def draw(rows: list[Row], path: Path) -> None:
    """Peaks as shares of their budgets, and extra time, measured against predicted."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    peaks, times = figure.subplots(1, 2)
    for name in dict.fromkeys(row["model"] for row in rows):
        kept = [row for row in rows if row["model"] == name and "peak" in row]
        peaks.scatter(
            [row["predicted_peak"] / row["budget"] for row in kept],
            [row["peak"] / row["budget"] for row in kept],
            label=name,
        )
        times.scatter(
            [100 * row["predicted_extra"] for row in kept],
            [100 * row["extra"] for row in kept],
        )
    peaks.axhline(1, color="black", label="the budget")
    for axes, title, unit in ((peaks, "peak", "÷ budget"), (times, "extra time", "%")):
        ends = [*axes.get_xlim(), *axes.get_ylim()]
        axes.plot([min(ends), max(ends)], [min(ends), max(ends)], color="grey", linestyle=":")
        axes.set(xlabel=f"predicted {title}, {unit}", ylabel=f"measured {title}, {unit}")
    peaks.legend(fontsize=8)
    figure.savefig(path)


if __name__ == "__main__":
    main()
