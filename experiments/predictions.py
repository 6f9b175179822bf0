"""What plans say beside what was measured: peaks and extra time, seven models, four budgets each.

    python -m experiments.predictions           # goes on where an earlier run was stopped
    python -m experiments.predictions --quick   # one small U-Net, one budget

Every row is a fresh process that trains ten steps. The budget is resident + share × (plain peak −
resident), where resident is what the allocator holds before the step. All else is as by default.
Extra time is of plain and rematerialized steps in turn, after those ten; what was predicted of it
is a share of the plain step's seconds, too. The rows go into a CSV file as they come, and a picture
is drawn of them.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from rich.console import Console
from rich.progress import track
from rich.table import Table

from checkmate_tf.cli.plots import line_styles
from checkmate_tf.workloads.models import ALL_WORKLOADS
from checkmate_tf.workloads.trial import run_trial
from solvers.graph.files import write_whole

SHARES = (0.9, 0.75, 0.6, 0.5)
STEPS, TURNS = 10, 4
_MEBIBYTE = 2**20
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
    parser.add_argument("--time-limit", type=float, default=60.0, help="of the solver, in seconds")
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
    Console(width=80).print(as_table(rows))
    print(summary(rows))
    print(ratios(rows))
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
        "predicted_extra": figures["plan"]["planned_overhead"],
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


def used(row: Row) -> float:
    """The measured peak as a share of the budget."""
    return float(row["peak"] / row["budget"])


def as_table(rows: list[Row]) -> Table:
    """The rows in MiB and percent, in 80 columns."""
    title = "Plans beside what was measured; sizes in MiB"
    table = Table(title=title, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model", no_wrap=True)
    for heading in (
        "oneDNN", "share", "budget", "peak", "used", "off by", "extra\ntime", "planned", "ratio",
    ):  # fmt: skip
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        cells = [row["model"], "on" if row["one_dnn"] else "off", f"{100 * row['share']:.0f} %"]
        cells += [f"{row['budget'] / _MEBIBYTE:.0f}"]
        if "peak" in row:
            cells += [
                f"{row['peak'] / _MEBIBYTE:.0f}{'' if row['peak'] <= row['budget'] else ' OVER'}",
                f"{used(row):.2f}",
                f"{100 * peak_error(row):+.1f} %",
                f"{100 * row['extra']:.1f} %",
                f"{100 * row['predicted_extra']:.1f} %",
                f"{beyond_plan(row):.3f}",
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
    extra, planned = ([row[key] for row in kept] for key in ("extra", "predicted_extra"))
    apart = [abs(one - other) for one, other in zip(extra, planned, strict=True)]
    within = sum(row["peak"] <= row["budget"] for row in kept)
    return (
        f"{len(rows)} budgets, {len(rows) - len(kept)} too small; the measured peak is within "
        f"{within} of {len(kept)}, and {median(map(used, kept)):.2f} of the budget in the median. "
        f"Predicted peaks are off by {100 * median(errors):.1f} % in the median and "
        f"{100 * max(errors):.1f} % at worst. Steps took {100 * median(extra):.1f} % longer than "
        f"plain ones in the median, planned were {100 * median(planned):.1f} %; the two differ by "
        f"{100 * median(apart):.1f} points in the median."
    )


def beyond_plan(row: Row) -> float:
    """The time of a step over what was planned for it."""
    return float((1 + row["extra"]) / (1 + row["predicted_extra"]))


def ratios(rows: list[Row]) -> str:
    """The medians of that, with oneDNN on and off."""
    kept = [row for row in rows if "peak" in row]
    medians = {
        on: median(beyond_plan(row) for row in kept if row["one_dnn"] == on)
        for on in sorted({row["one_dnn"] for row in kept}, reverse=True)
    }
    parts = [f"{each:.3f} with oneDNN {'on' if on else 'off'}" for on, each in medians.items()]
    return f"Steps took, in the median of their ratios to what was planned: {', '.join(parts)}."


def draw(rows: list[Row], path: Path) -> None:
    """Peaks and extra time, measured against predicted; what is over its budget is circled."""
    figure = Figure(figsize=(11, 5), layout="constrained")
    peaks, times = figure.subplots(1, 2)
    kept = [row for row in rows if "peak" in row]
    for name, (colour, marker) in line_styles(row["model"] for row in rows).items():
        of_model = [row for row in kept if row["model"] == name]
        style: dict[str, Any] = {"color": colour, "marker": marker, "alpha": 0.8}
        predicted, measured = _mebibytes(of_model)
        peaks.scatter(predicted, measured, label=name, **style)
        times.scatter(
            [100 * row["predicted_extra"] for row in of_model],
            [100 * row["extra"] for row in of_model],
            **style,
        )
    over = [row for row in kept if row["peak"] > row["budget"]]
    if over:
        label = "over its budget"
        peaks.scatter(*_mebibytes(over), s=160, facecolor="none", edgecolor="red", label=label)
    _draw_peak_axes(peaks, kept)
    _draw_equality(times)
    times.set(title="extra time, %", xlabel="predicted", ylabel="measured")
    times.grid(alpha=0.3)
    figure.savefig(path)


def _mebibytes(rows: list[Row]) -> tuple[list[float], list[float]]:
    """Predicted and measured peaks."""
    return (
        [row["predicted_peak"] / _MEBIBYTE for row in rows],
        [row["peak"] / _MEBIBYTE for row in rows],
    )


def _draw_peak_axes(axes: Axes, rows: list[Row]) -> None:
    """As large below as on the left, both logarithmic; and where predictions are 5 % off."""
    sizes = [size for each in _mebibytes(rows) for size in each] or [1.0]
    ends = [min(sizes) / 1.1, 1.1 * max(sizes)]
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
    axes.plot(ends, ends, color="grey", linestyle=":", zorder=0)
    axes.fill_between(
        ends, [0.95 * end for end in ends], [1.05 * end for end in ends], color="0.92", zorder=0,
        label="5 % off at most",
    )  # fmt: skip
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set(title="peak, MiB", xlabel="predicted", ylabel="measured")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _draw_equality(axes: Axes) -> None:
    """Where both are equal, from end to end of the points."""
    ends = [*axes.get_xlim(), *axes.get_ylim()]
    axes.plot([min(ends), max(ends)], [min(ends), max(ends)], color="grey", linestyle=":")


if __name__ == "__main__":
    main()
