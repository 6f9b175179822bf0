"""Measured peak and step time of rematerialized Keras train steps, beside the plain ones.

    python -m experiments.step_benchmark            # seven models, oneDNN on and off
    python -m experiments.step_benchmark --quick    # MobileNetV2 only, few steps

Every trial has a fresh process. The budget is resident + ½ × (plain peak − resident), where
resident is what the allocator holds before the step. Times are of plain and rematerialized steps
in turn, in the process of the latter, because machines are noisy. Beside them is what was
told: the planned extra time. Results are compared after three steps.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from checkmate_tf.workloads.models import ALL_WORKLOADS
from checkmate_tf.workloads.trial import run_trial
from solvers.graph.files import write_whole

COMPARED_STEPS = 3
SHARE = 0.5


def main() -> None:
    """Run the trials and print their table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", nargs="+", default=list(ALL_WORKLOADS), choices=ALL_WORKLOADS)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--one-dnn", nargs="+", type=int, default=[1, 0], choices=[0, 1])
    parser.add_argument("--no-numerics", action="store_true", help="peaks and times only")
    parser.add_argument("--quick", action="store_true", help="MobileNetV2, oneDNN on, few steps")
    parser.add_argument("--output", default="results/step_benchmark.json")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.models, arguments.one_dnn, arguments.steps = ["MobileNetV2"], [1], 5
    Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
    runs = [(name, bool(on)) for on in arguments.one_dnn for name in arguments.models]
    rows = []
    for name, one_dnn in track(runs, "training", console=Console(stderr=True), transient=True):
        row = measure_workload(name, one_dnn, arguments.steps)
        if not arguments.no_numerics:
            row |= compare_results(name, one_dnn, row["budget"])
        rows.append(row)
        write_whole(arguments.output, json.dumps(rows, indent=1))
    print_tables(rows)


def measure_workload(name: str, one_dnn: bool, steps: int) -> dict[str, Any]:
    """Peaks and times of one model, plain and rematerialized."""
    plain = run_trial(name, steps, one_dnn=one_dnn)
    resident, plain_peak = plain["resident"], max(plain["peaks"][1:])
    budget = int(resident + SHARE * (plain_peak - resident))
    ours = run_trial(name, steps, budget=budget, one_dnn=one_dnn, compare_times=2 * steps)
    seconds = {name: median(each) for name, each in ours["compared_seconds"].items()}
    return {
        "model": name,
        "one_dnn": one_dnn,
        "resident": resident,
        "plain_peak": plain_peak,
        "budget": budget,
        "peak": max(ours["peaks"]),
        "predicted_peak": ours["plan"]["predicted_peak"],
        "told": ours["plan"]["planned_overhead"],
        "plain_seconds": seconds["plain"],
        "seconds": seconds["ours"],
        "slowdown": seconds["ours"] / seconds["plain"],
        "ready": ours["ready"],
        "nodes": ours["plan"]["nodes"],
    }


def compare_results(name: str, one_dnn: bool, budget: int) -> dict[str, Any]:
    """How far the variables are apart after three steps: bits, float64 and float32.

    Bits are compared without oneDNN, whose fusions can't be turned off.
    """
    with tempfile.TemporaryDirectory() as folder:

        def variables(label: str, budget: int | None, **options: Any) -> list[Any]:
            path = Path(folder) / f"{label}.npz"
            run_trial(name, COMPARED_STEPS, budget=budget, one_dnn=one_dnn, save=path, **options)
            with np.load(path) as saved:
                return [saved[key] for key in saved.files]

        bits_equal = None
        if not one_dnn:
            exact = variables("exact", None, exact=True)
            ours_exact = variables("ours-exact", budget, exact=True, time_limit=20)
            bits_equal = all(np.array_equal(a, b) for a, b in zip(exact, ours_exact, strict=True))
        single = variables("plain", None)
        ours = variables("ours", budget, time_limit=20)
        # Twice the bytes for every number, so twice the budget.
        double = variables("plain64", None, float64=True)
        ours_double = variables("ours64", 2 * budget, float64=True, time_limit=20)
    return {
        "bits_equal": bits_equal,
        "float64_distance": distance(double, ours_double),
        "plain_distance": distance(double, single),
        "distance": distance(double, ours),
    }


def distance(reference: list[Any], others: list[Any]) -> float:
    """‖others − reference‖ / ‖reference‖ over all floating-point variables together."""
    pairs = [
        (np.asarray(a, np.float64), np.asarray(b, np.float64))
        for a, b in zip(reference, others, strict=True)
        if np.issubdtype(a.dtype, np.floating)
    ]
    apart = sum(float(np.sum((b - a) ** 2)) for a, b in pairs)
    size = sum(float(np.sum(a**2)) for a, _ in pairs)
    return float(np.sqrt(apart / size))


_PEAKS = ("held", "plain", "budget", "peak", "within", "told", "measured", "ratio", "ready")
_RESULTS = ("bits equal", "ours − plain\nfloat64", "plain −\nfloat64", "ours −\nfloat64")


def print_tables(rows: list[dict[str, Any]]) -> None:
    """Two tables of 80 columns: memory and time, and results.

    Held is what is there before the step. Told and measured are multiples of the plain step's time.
    """
    console = Console(width=80)
    table = _table("Peak (MiB), and step time over that of the plain step", _PEAKS)
    for row in rows:
        sizes = [f"{row[k] / 2**20:.0f}" for k in ("resident", "plain_peak", "budget", "peak")]
        times = [f"{each:.3f}" for each in _times(row)]
        within = "yes" if row["peak"] <= row["budget"] else "NO"
        table.add_row(*_name(row), *sizes, within, *times, f"{row['ready']:.0f} s")
    for on in sorted({row["one_dnn"] for row in rows}, reverse=True):
        of = zip(*(_times(row) for row in rows if row["one_dnn"] == on), strict=True)
        times = [f"{median(each):.3f}" for each in of]
        table.add_row("median", "on" if on else "off", *[""] * 5, *times, "")
    console.print(table)
    if "bits_equal" not in rows[0]:
        return
    table = _table(f"Variables after {COMPARED_STEPS} steps: relative distances", _RESULTS)
    for row in rows:
        distances = [f"{row[k]:.1e}" for k in ("float64_distance", "plain_distance", "distance")]
        bits = {True: "yes", False: "NO", None: "–"}[row["bits_equal"]]
        table.add_row(*_name(row), bits, *distances)
    console.print(table)


def _times(row: dict[str, Any]) -> tuple[float, float, float]:
    """Of a step, over the plain one: told, measured, and the latter over the former."""
    told, measured = 1 + row["told"], row["slowdown"]
    return told, measured, measured / told


def _table(title: str, headings: tuple[str, ...]) -> Table:
    table = Table(title=title, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model", no_wrap=True)
    for heading in ("oneDNN", *headings):
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _name(row: dict[str, Any]) -> tuple[str, str]:
    return row["model"], "on" if row["one_dnn"] else "off"


if __name__ == "__main__":
    main()
