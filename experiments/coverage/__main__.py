"""What comes of every kind of train step: results, bits, peak, predicted peak, message.

    python -m experiments.coverage                     # all; goes on where it was stopped
    python -m experiments.coverage --only "LSTM" "GRU"
    python -m experiments.coverage --quick             # three kinds
    python -m experiments.coverage --show              # the table of what is there

Each kind has a process of its own, without oneDNN and graph rewrites, so that the plain step
repeats its own bits. It is planned for 60 % of its activations, trained twice, and so is the plain
step; the peaks are the allocator's, of the second training.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from experiments.coverage.families import table_of_families
from solvers.graph.files import read_json, write_whole

OUTPUT = Path(__file__).parent / "results" / "coverage.csv"
QUICK = ("grouped convolution", "tf.while_loop", "fit(x, y)")
COLUMNS = (
    "name", "group", "outcome", "equal", "recomputations", "plain", "ours", "resident", "budget",
    "predicted", "overhead", "messages",
)  # fmt: skip
SECONDS = 600
"""A kind that takes longer is a row that says so."""

NEAR = 0.05
"""A predicted peak is good if it is off by no more, as a share of the measured one."""

Line = dict[str, Any]


def main(command_line: Sequence[str] | None = None) -> None:
    """Try what is missing in the CSV file; print its table."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from experiments.coverage.kinds import KINDS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", nargs="+", metavar="KIND", help="these kinds, done or not")
    parser.add_argument("--quick", action="store_true", help="three kinds, small")
    parser.add_argument("--show", action="store_true", help="what is there, nothing is tried")
    parser.add_argument("--list", action="store_true", help="names of all kinds")
    parser.add_argument("--output", type=Path, metavar="FILE.csv", help="written as rows come")
    arguments = parser.parse_args(command_line)
    if arguments.list:
        print("\n".join(KINDS))
        return
    unknown = sorted(set(arguments.only or ()) - set(KINDS))
    if unknown:
        parser.error(f"no kind is called {unknown[0]!r}; --list shows all")
    output = arguments.output or (Path("results/coverage.csv") if arguments.quick else OUTPUT)
    lines = read_lines(output)
    chosen = arguments.only or (QUICK if arguments.quick else KINDS)
    missing = [each for each in chosen if arguments.only or each not in lines]
    missing = [] if arguments.show else missing
    console = Console(stderr=True)
    for name in track(missing, "training", console=console, transient=True):
        flags = ["--small"] if arguments.quick else []
        (lines[name],) = tried([name], [KINDS[name].group], *flags)
        write_lines(output, [lines[each] for each in KINDS if each in lines])
    shown = [lines[each] for each in chosen if each in lines]
    Console().print(as_table(shown))
    errors = {each["name"]: off for each in shown if (off := error_of_prediction(each)) is not None}
    over = [each["name"] for each in shown if is_over(each)]
    Console().print(table_of_families(errors, over, [each["name"] for each in shown], NEAR))
    print(summary(shown))


def tried(names: Sequence[str], groups: Sequence[str], *flags: str) -> list[Line]:
    """The rows of these kinds, from a process of their own."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "rows.json"
        command = [sys.executable, "-m", "experiments.coverage.trial", *names, *flags]
        command += ["--output", str(output)]
        outcome = f"more than {SECONDS} s"
        with contextlib.suppress(subprocess.TimeoutExpired):
            ended = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=SECONDS
            )
            if not ended.returncode:
                rows: list[Line] = read_json(output)
                return [{**row, "messages": " | ".join(row["messages"])} for row in rows]
            lines = ended.stderr.strip().splitlines()
            outcome = lines[-1][:200] if lines else f"exit status {ended.returncode}"
    return [
        {"name": name, "group": group, "outcome": outcome}
        for name, group in zip(names, groups, strict=True)
    ]


def read_lines(path: Path) -> dict[str, Line]:
    """The lines of a CSV file by name, none if it is not there."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {line["name"]: dict(line) for line in csv.DictReader(file)}


def write_lines(path: Path, lines: list[Line]) -> None:
    """Replace the CSV file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.getvalue())


def _number(line: Line, column: str) -> float:
    return float(line.get(column) or 0)


def is_equal(line: Line) -> bool:
    """Whether every bit was the plain step's."""
    return str(line.get("equal")) == "True"


def is_over(line: Line) -> bool:
    """Whether a step held more than its budget."""
    return _number(line, "ours") > _number(line, "budget") > 0


def error_of_prediction(line: Line) -> float | None:
    """How far the predicted peak is from the measured one, as a share of the latter."""
    if not _number(line, "predicted"):
        return None
    return _number(line, "predicted") / _number(line, "ours") - 1


def as_table(lines: list[Line]) -> Table:
    """The lines in MiB and percent."""
    table = Table(title="Kinds of train steps", box=None, pad_edge=False)
    table.add_column("kind", overflow="fold", max_width=30)
    for heading in ("bits", "plain", "budget", "peak", "off by", "again"):
        table.add_column(heading, justify="right")
    table.add_column("outcome", overflow="fold", max_width=24)
    for line in lines:
        off = error_of_prediction(line)
        sizes = [f"{_number(line, each) / 2**20:.0f}" for each in ("plain", "budget", "ours")]
        table.add_row(
            line["name"],
            "=" if is_equal(line) else "≠",
            *sizes[:2],
            sizes[2] + (" OVER" if is_over(line) else ""),
            "" if off is None else f"{100 * off:+.1f} %",
            f"{_number(line, 'recomputations'):.0f}",
            line["outcome"],
        )
    return table


def summary(lines: list[Line]) -> str:
    """The lines in one sentence."""
    planned = [each for each in lines if error_of_prediction(each) is not None]
    near = sum(abs(error_of_prediction(each) or 0) <= NEAR for each in planned)
    return (
        f"{len(lines)} kinds: {sum(is_equal(each) for each in lines)} equal to the last bit, "
        f"{len(planned)} planned, of which {sum(is_over(each) for each in planned)} over their "
        f"budget and {near} predicted within {100 * NEAR:g} %."
    )


if __name__ == "__main__":
    main()
