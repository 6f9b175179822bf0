"""Cost models side by side: what a train step should take, and what it takes.

    python -m experiments.cost_models           # four models, oneDNN on and off
    python -m experiments.cost_models --quick   # U-Net at a quarter of its size, oneDNN on
    python -m experiments.cost_models --stored  # nothing is run: errors against stored profiles

Every row has a fresh process. Its operations are all measured again, and the step runs in between,
plain and rewritten with nothing recomputed, so that all see the same noise; measured step times are
medians of these runs. A prediction is the sum over the step's operations, as if they ran one after
the other. Arithmetic alone becomes seconds by the rate that the roofline assumes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from checkmate_tf.workloads.models import ALL_WORKLOADS, WORKLOADS
from solvers.graph.files import read_json, write_whole

_STEPS = 12
"""Runs of each step, spread over the measurements."""

_PREDICTIONS = ("flops", "roofline", "calibrated roofline", "profile")


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", nargs="+", default=list(WORKLOADS), choices=list(ALL_WORKLOADS))
    parser.add_argument("--one-dnn", nargs="+", type=int, default=[1, 0], choices=[0, 1])
    parser.add_argument("--quick", action="store_true", help="a small U-Net, oneDNN on")
    parser.add_argument("--stored", action="store_true", help="errors against stored profiles")
    parser.add_argument("--side", type=int, help="of the images, in place of the model's own")
    parser.add_argument("--output", default="results/cost_models.json")
    parser.add_argument("--row", metavar="FILE", help="one row, in this process, as JSON")
    arguments = parser.parse_args()
    if arguments.stored:
        from experiments.stored_costs import tables

        Console(width=100).print(*tables(), sep="\n\n")
        return
    if arguments.row:
        row = measure_row(arguments.models[0], arguments.side)
        write_whole(arguments.row, json.dumps(row))
        return
    if arguments.quick:
        arguments.models, arguments.one_dnn, arguments.side = ["U-Net"], [1], 48
    Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
    runs = [(name, bool(on)) for on in arguments.one_dnn for name in arguments.models]
    rows = []
    for name, one_dnn in track(runs, "measuring", console=Console(stderr=True), transient=True):
        rows.append({"one_dnn": one_dnn, **_row_of_fresh_process(name, one_dnn, arguments.side)})
        write_whole(arguments.output, json.dumps(rows, indent=1))
    Console(width=80).print(as_table(rows))


def _row_of_fresh_process(name: str, one_dnn: bool, side: int | None) -> dict[str, Any]:
    environment = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_ENABLE_ONEDNN_OPTS": "1" if one_dnn else "0",
        "TF_CPU_ALLOCATOR_USE_BFC": "true",  # which counts bytes, for the workspaces
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "row.json"
        command = [sys.executable, "-m", "experiments.cost_models", "--models", name]
        command += ["--row", str(path), *(["--side", str(side)] if side else [])]
        subprocess.run(command, env=environment, check=True)
        row: dict[str, Any] = read_json(path)
        return row


def step_of_model(name: str, side: int | None = None) -> tuple[Any, Any]:
    """The train step of a model as a `tf.function`, and a batch to call it with.

    Args:
        name: of the model.
        side: of its images, where they are not its own size.
    """
    import tensorflow as tf

    from checkmate_tf.workloads.data import batches_of
    from checkmate_tf.workloads.models import compiled

    workload = ALL_WORKLOADS[name]
    side = side or workload.side
    (batch,) = batches_of(workload, 1, workload.batch, side)
    return tf.function(compiled(workload, side).train_step, jit_compile=False), batch


def measure_row(name: str, side: int | None = None) -> dict[str, Any]:
    """Step time of one model as measured, and as each cost model predicts it."""
    import tensorflow as tf

    from checkmate_tf.graph.extraction import extract_program
    from checkmate_tf.graph.step_operations import step_operations
    from checkmate_tf.program.rewrite import rewrite_extracted
    from checkmate_tf.trace.program import resolve
    from profiles.measure.surveys import survey
    from profiles.profiled import ProfiledCosts
    from profiles.roofline import Roofline, device_ceilings, floating_point_operations
    from solvers import Schedule

    side = side or ALL_WORKLOADS[name].side
    step, batch = step_of_model(name, side)
    program = resolve(step.get_concrete_function(batch))
    operations = [each.operation for each in step_operations(program)]
    extracted = extract_program(program)
    rewritten: Any = tf.function(
        rewrite_extracted(extracted, Schedule(range(len(extracted.graph)))), autograph=False
    )
    runs: dict[str, Callable[[], Any]] = {
        "measured": lambda: step(batch),
        "rewritten": lambda: rewritten(batch),
    }
    for run in (*runs.values(), *runs.values()):
        run()
    seconds: dict[str, list[float]] = {label: [] for label in runs}
    start = time.perf_counter()
    profile = survey(operations, progress=_interleaved(runs, seconds), again=True)
    survey_seconds = time.perf_counter() - start - sum(map(sum, seconds.values()))
    ceilings = device_ceilings("CPU")
    costs = ProfiledCosts(profile, ceilings)
    arithmetic = sum(map(floating_point_operations, operations))
    predictions = (
        arithmetic / ceilings.rate,
        sum(map(Roofline(ceilings).cost, operations)),
        sum(map(costs.fallback.cost, operations)),
        sum(map(costs.cost, operations)),
    )
    return {
        "model": name,
        "side": side,
        "device": profile.device,
        **{label: median(times) for label, times in seconds.items()},
        "fastest": min(seconds["measured"]),
        "slowest": max(seconds["measured"]),
        **dict(zip(_PREDICTIONS, predictions, strict=True)),
        "operations": len(operations),
        "distinct": len(set(operations)),
        "not in the profile": costs.missing(operations),
        "survey_seconds": survey_seconds,
    }


def _interleaved(
    runs: Mapping[str, Callable[[], Any]], seconds: Mapping[str, list[float]]
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Passes things on, with `_STEPS` timed runs of each kind evenly in between."""

    def passed_on(things: Iterable[Any]) -> Iterator[Any]:
        waiting = list(things)
        pause = max(1, len(waiting) // _STEPS)
        for number, each in enumerate(waiting):
            for label, run in runs.items() if number % pause == 0 else ():
                start = time.perf_counter()
                run()
                seconds[label].append(time.perf_counter() - start)
            yield each

    return passed_on


_HEADINGS = (
    "oneDNN", "plain", "ours", "flops", "roofline", "roofline\ncalibrated", "profile",
    "not\nknown", "survey",
)  # fmt: skip


def as_table(rows: list[dict[str, Any]]) -> Table:
    """The plain step and the survey in seconds, all else but counts as multiples of the former."""
    title = "Step time: plain (s), and all else ÷ plain; survey in s"
    table = Table(title=title, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model", no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row["model"],
            "on" if row["one_dnn"] else "off",
            f"{row['measured']:.2f}",
            *(f"{row[key] / row['measured']:.2f}" for key in ("rewritten", *_PREDICTIONS)),
            str(row["not in the profile"]),
            f"{row['survey_seconds']:.0f}",
        )
    return table


if __name__ == "__main__":
    main()
