"""Steps that XLA compiles: memory, bits and time of plans, beside the plain compiled step.

    python -m experiments.xla           # every row that the file does not have yet
    python -m experiments.xla --quick   # a small residual net

Every row has a fresh process and is written as soon as it is there. Temporary bytes are the
compiler's own, of the function that trains, around the step: they are exact, and the same on a
busy machine. Times are medians of plain and planned steps in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from solvers.graph.files import read_json, write_whole

_DEPTH_FIRST = "--xla_cpu_enable_concurrency_optimized_scheduler=false"
"""A scheduler that is closer to what a GPU does."""

_COMPARED_STEPS = 3


@dataclass(frozen=True)
class Row:
    """What is compiled.

    Attributes:
        model: a name in `_builders`.
        batch, side: of the images, or of the texts.
        share: of the plain compiled step's memory, beside variables and inputs.
        optimizer: "sgd" with momentum, or "adam".
        depth_first: without XLA's concurrency-optimized scheduler for CPUs.
        precision: Keras' policy for types.
    """

    model: str
    batch: int
    side: int
    share: float
    optimizer: str = "sgd"
    depth_first: bool = False
    precision: str = "float32"


QUICK = (Row("residual", 4, 24, 0.6),)

ROWS = (
    Row("residual", 32, 48, 0.33),
    Row("MobileNetV2", 16, 128, 0.40),
    Row("residual", 32, 48, 0.65, depth_first=True),
    Row("residual", 16, 48, 0.41, "adam"),
    Row("residual", 16, 48, 0.33, "adam", precision="mixed_bfloat16"),
    Row("recurrent", 16, 48, 0.6),
    Row("GPT", 8, 128, 0.55, "adam"),
    Row("ResNet50", 8, 96, 0.49),
    *(Row("residual", 32, 48, share) for share in (0.5, 0.7)),
    *(Row("MobileNetV2", 16, 128, share) for share in (0.55, 0.7)),
    *(Row("U-Net", 4, 192, share) for share in (0.5, 0.7)),
)


def main() -> None:
    """Run the rows that are missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", nargs="+", help="only rows of these")
    parser.add_argument("--quick", action="store_true", help="a small residual net")
    parser.add_argument("--no-times", action="store_true", help="bytes and bits only")
    parser.add_argument("--time-limit", type=float, default=60.0, help="of the solver, seconds")
    parser.add_argument("--output", default="results/xla.json")
    parser.add_argument("--row", nargs=2, metavar=("ROW", "FILE"), help="one row, in this process")
    arguments = parser.parse_args()
    if arguments.row:
        row = Row(**json.loads(arguments.row[0]))
        figures = measure(row, arguments.time_limit, times=not arguments.no_times)
        write_whole(arguments.row[1], json.dumps(figures))
        return
    output = Path(arguments.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    done: list[dict[str, Any]] = read_json(output) if output.exists() else []
    done = [{"precision": "float32", **each} for each in done]  # some files don't say it
    for row in QUICK if arguments.quick else ROWS:
        known = any(asdict(row).items() <= each.items() for each in done)
        if not known and (not arguments.models or row.model in arguments.models):
            done.append(_in_fresh_process(row, arguments.time_limit, arguments.no_times))
            write_whole(output, json.dumps(done, indent=1))
    print_table(done)


def _in_fresh_process(row: Row, time_limit: float, no_times: bool) -> dict[str, Any]:
    environment = {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ}
    if row.depth_first:
        environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {_DEPTH_FIRST}".strip()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "row.json"
        command = [sys.executable, "-m", "experiments.xla", "--time-limit", str(time_limit)]
        command += ["--no-times"] * no_times + ["--row", json.dumps(asdict(row)), str(file)]
        subprocess.run(command, env=environment, check=True)
        figures: dict[str, Any] = read_json(file)
    return {**asdict(row), **figures}


def measure(row: Row, time_limit: float = 60.0, times: bool = True) -> dict[str, Any]:
    """Figures of one row: bytes, compilations, variables that differ, seconds."""
    import tensorflow as tf

    import checkmate_tf
    from checkmate_tf.doctor.steps import distance_of_results
    from profiles.measure.compilation import compiled_memory

    model, data = _model(row), _data(row)
    model.train_step(data)  # makes what is made at the first step
    variables = [*model.variables, *model.optimizer.variables]
    start = [each.numpy() for each in variables]
    step = checkmate_tf.rematerialize(
        model.train_step, budget=row.share, time_limit=time_limit, on_infeasible="min"
    )
    began = time.perf_counter()
    plain = tf.function(model.train_step, jit_compile=True)
    sizes = [tf.TensorSpec(each.shape, each.dtype) for each in data]
    plain_memory = compiled_memory(plain.get_concrete_function(data), sizes)
    plain_seconds = time.perf_counter() - began
    began = time.perf_counter()
    planned = tf.function(lambda given: step(given), jit_compile=True)
    concrete = planned.get_concrete_function(data)
    plan_seconds = time.perf_counter() - began
    memory = compiled_memory(concrete, sizes)
    plan = step.plan
    assert plan is not None
    assert plan.compiled_peak is not None
    assert plan.compiled_baseline_peak is not None

    def train(function: Callable[[Any], Any]) -> list[Any]:
        for variable, value in zip(variables, start, strict=True):
            variable.assign(value)
        for _ in range(_COMPARED_STEPS):
            function(data)
        return [each.numpy() for each in variables]

    expected, values = train(plain), train(planned)
    pairs = zip(expected, values, strict=True)
    resident = plan.compiled_peak - memory.added
    predicted = plan.predicted_peak - resident
    return {
        "temporary": memory.temporary,
        "plain_temporary": plain_memory.temporary,
        "got": memory.temporary / plain_memory.temporary,
        "kept": plan.compiled_peak <= plan.budget,
        "compilations": plan.compilations,
        "forecast_error": predicted / memory.added - 1,
        "overhead": plan.overhead,
        "plain_compile_seconds": plain_seconds,
        "plan_seconds": plan_seconds,
        "variables": len(variables),
        "different": sum(one.tobytes() != other.tobytes() for one, other in pairs),
        "distance": distance_of_results(expected, values, start),
        "slowdown": _slowdown(plain, planned, data) if times else None,
    }


def _slowdown(plain: Any, planned: Any, data: Any, rounds: int = 9) -> float:
    """Ratio of the medians of steps that run in turn."""
    seconds: dict[Any, list[float]] = {plain: [], planned: []}
    for _ in range(rounds):
        for function, taken in seconds.items():
            began = time.perf_counter()
            function(data)
            taken.append(time.perf_counter() - began)
    return median(seconds[planned]) / median(seconds[plain])


def _model(row: Row) -> Any:
    import keras

    from checkmate_tf.workloads.models import ALL_WORKLOADS, compile_model, residual

    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy(row.precision)
    own = {"residual": residual, "recurrent": _recurrent}
    kind = "text" if row.model == "GPT" or row.model in own else "images"  # logits
    build = own.get(row.model) or ALL_WORKLOADS[row.model].build
    model = compile_model(build(row.side), kind)  # type: ignore[arg-type]
    if row.optimizer == "adam":
        model.compile("adam", model.loss, jit_compile=False)
        model.optimizer.build(model.trainable_variables)
    return model


def _recurrent(side: int) -> Any:
    """Convolutions whose rows a recurrent layer reads, in a loop; ten logits."""
    import keras
    from keras import layers

    inputs = x = keras.Input((side, side, 3))
    for _ in range(6):
        x = layers.Conv2D(16, 3, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.GRU(32)(layers.Reshape((side, 16 * side))(x))
    return keras.Model(inputs, layers.Dense(10)(x), name="recurrent")


def _data(row: Row) -> tuple[Any, Any]:
    import numpy as np
    import tensorflow as tf

    generator = np.random.default_rng(0)
    if row.model == "GPT":
        text = tf.constant(generator.integers(0, 256, (row.batch, row.side)), tf.int32)
        return text, text
    images = generator.normal(size=(row.batch, row.side, row.side, 3))
    labels = (row.batch, row.side, row.side) if row.model == "U-Net" else (row.batch,)
    return tf.constant(images, tf.float32), tf.constant(generator.integers(0, 10, labels), tf.int32)


def print_table(rows: list[dict[str, Any]]) -> None:
    """One line for each row."""
    title = "Temporary memory of steps that XLA compiles"
    table = Table(title=title, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("step", max_width=18)
    columns = (
        "plain\nMB", "asked\n%", "got\nMB", "got\n%", "kept", "plans", "off\n%",
        "variables\ndiffer", "× plain\ntime",
    )  # fmt: skip
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        name = f"{row['model']} {row['batch']}×{row['side']} {row['optimizer']}"
        name += f", {row['precision']}" * (row["precision"] != "float32")
        table.add_row(
            name + ", depth first" * row["depth_first"],
            f"{row['plain_temporary'] / 1e6:.1f}",
            f"{100 * row['share']:.0f}",
            f"{row['temporary'] / 1e6:.1f}",
            f"{100 * row['got']:.1f}",
            "yes" if row["kept"] else "no",
            str(row["compilations"]),
            f"{100 * row['forecast_error']:+.1f}",
            f"{row['different']} of {row['variables']}"
            + (f"\nby {row['distance']:.0e}" if row.get("distance") else ""),
            "" if row["slowdown"] is None else f"{row['slowdown']:.2f}",
        )
    Console().print(table)
    print("plans: how many were compiled; off: by how much the first forecast was")
    print("by: ‖planned − plain‖ ÷ what the plain steps have changed")


if __name__ == "__main__":
    main()
