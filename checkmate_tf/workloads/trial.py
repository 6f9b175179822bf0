"""One training trial in a process of its own, for experiments that compare processes.

    python -m checkmate_tf.workloads.trial --model MobileNetV2 --steps 5 --output plain.json
    python -m checkmate_tf.workloads.trial --model MobileNetV2 --steps 5 \
        --budget 200MB --output rematerialized.json

Allocator limits and oneDNN are chosen by environment variables, which TensorFlow reads when it
is imported; `run_trial` starts such a process.
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
from pathlib import Path
from typing import Any, Literal

from solvers.graph.files import read_json, write_whole

EXHAUSTED = 9
"""Exit status of a trial that ended in ResourceExhaustedError."""

TOO_SMALL = 10
"""Exit status of a trial that found no schedule within its budget."""

_MUCH = 1 << 40
"""Bytes of a budget within which nothing has to be recomputed."""


def run_trial(
    model: str,
    steps: int,
    budget: int | Literal["min", "device"] | None = None,
    limit_bytes: int | None = None,
    one_dnn: bool = True,
    save: Path | None = None,
    cache: Path | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Run a trial in a fresh process; its figures.

    Where memory ran out they are {"exhausted": True}, and where the budget can't be kept
    {"too_small": True}.

    Args:
        model: a name in `ALL_WORKLOADS` or `LARGE_WORKLOADS` of `checkmate_tf.workloads.models`.
        steps: of training.
        budget: bytes for the rematerialized step, "min" or "device"; None for the plain one.
        limit_bytes: what the CPU allocator may hold; no limit by default.
        one_dnn: whether TensorFlow's oneDNN kernels are on.
        save: file for the variables after the last step (.npz).
        cache: folder for its plans and profiles; by default the user's profiles, and no plans.
        options: more flags of this module, like `side=96` or `exact=True`.
    """
    environment = trial_environment(limit_bytes, one_dnn)
    if cache is not None:
        environment |= {
            "CHECKMATE_TF_CACHE": str(cache / "profiles"),
            "CHECKMATE_TF_PLANS": str(cache / "plans"),
        }
    if limit_bytes is not None:
        options["limit"] = limit_bytes // 2**20 * 2**20
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "figures.json"
        options |= {"model": model, "steps": steps, "budget": budget, "save": save}
        options["output"] = output
        command = [sys.executable, "-m", "checkmate_tf.workloads.trial"]
        for name, value in options.items():
            if value is not None:
                flag = f"--{name.replace('_', '-')}"
                command.append(flag if value is True else f"{flag}={value}")
        ended = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
        known_ends = {EXHAUSTED: "exhausted", TOO_SMALL: "too_small"}
        if ended.returncode in known_ends:
            return {known_ends[ended.returncode]: True}
        if ended.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{ended.stderr[-3000:]}")
        figures: dict[str, Any] = read_json(output)
    return {"exhausted": False, **figures}


def trial_environment(limit_bytes: int | None = None, one_dnn: bool = True) -> dict[str, str]:
    """The environment of a process whose CPU allocator counts, and keeps a limit if there is one.

    Args:
        limit_bytes: what the allocator may hold, in whole MiB.
        one_dnn: whether TensorFlow's oneDNN kernels are on.
    """
    environment = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_ENABLE_ONEDNN_OPTS": "1" if one_dnn else "0",
        "TF_CPU_ALLOCATOR_USE_BFC": "true",
        "CHECKMATE_TF_PLANS": "off",  # figures are of plans that are made
    }
    if limit_bytes is not None:
        environment["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = str(limit_bytes // 2**20)
    return environment


def main() -> int:
    """Train as the arguments say, and write the figures."""
    parser = argparse.ArgumentParser(description="one training trial")
    parser.add_argument("--model", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--budget", type=_bytes_or_words, help='in bytes, "min" or "device"')
    parser.add_argument("--batch", type=int)
    parser.add_argument("--side", type=int)
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--costs", default="device")
    parser.add_argument("--float64", action="store_true")
    parser.add_argument(
        "--exact", action="store_true", help="graph rewrites off, so that bits can be compared"
    )
    parser.add_argument(
        "--compare-times", type=int, default=0, help="so many steps beside plain ones, in turn"
    )
    parser.add_argument(
        "--compare-unchanged", action="store_true", help="and beside ours with nothing recomputed"
    )
    parser.add_argument("--limit", type=int, help="the allocator's limit, in bytes")
    parser.add_argument("--save")
    parser.add_argument("--output", required=True)
    arguments = parser.parse_args()
    return write_figures(lambda: train(arguments), arguments.output)


def _bytes_or_words(text: str) -> int | str:
    return text if text in ("min", "device") else int(text)


def write_figures(train: Callable[[], dict[str, Any]], path: str) -> int:
    """Write what `train` returns to a file; the exit status, which tells why there is none."""
    import tensorflow as tf

    import checkmate_tf

    try:
        figures = train()
    except tf.errors.ResourceExhaustedError as error:
        print(str(error)[:300], file=sys.stderr)
        return EXHAUSTED
    except checkmate_tf.BudgetError as error:
        print(error, file=sys.stderr)
        return TOO_SMALL
    write_whole(path, json.dumps(figures))
    return 0


def train(arguments: argparse.Namespace) -> dict[str, Any]:
    """Train and measure every step: losses, seconds, peaks."""
    import keras
    import tensorflow as tf

    import checkmate_tf
    from checkmate_tf.devices.current import current_device
    from checkmate_tf.devices.measure import held_bytes
    from checkmate_tf.workloads.data import batches_of
    from checkmate_tf.workloads.models import ALL_WORKLOADS, LARGE_WORKLOADS, compiled

    if arguments.limit is not None:
        # As a GPU's allocator does. The process has taken a little before its first tensor.
        current_device().reserve(arguments.limit - 4 * 2**20)
    if arguments.exact:
        turn_off_fusions()
    keras.utils.set_random_seed(0)
    workload = {**ALL_WORKLOADS, **LARGE_WORKLOADS}[arguments.model]
    side, batch = arguments.side or workload.side, arguments.batch or workload.batch
    model = compiled(workload, side)
    if arguments.float64:
        weights = model.get_weights()  # other numbers would be drawn for 64 bits
        keras.backend.set_floatx("float64")
        keras.config.set_dtype_policy("float64")  # the first model has settled on another one
        model = compiled(workload, side)
        model.set_weights(weights)
    dtype = keras.backend.floatx()
    batches = batches_of(workload, min(arguments.steps, 8), batch, side, dtype)
    resident = held_bytes()
    start = time.perf_counter()
    if arguments.budget is None:
        step: Any = tf.function(model.train_step, jit_compile=False)
    else:
        step = checkmate_tf.rematerialize(
            model.train_step,
            budget=arguments.budget,
            costs=arguments.costs,
            time_limit=arguments.time_limit,
        )
    losses, seconds, peaks = [], [], []
    ready = 0.0
    for number in range(arguments.steps):
        data = batches[number % len(batches)]
        before = time.perf_counter()
        loss, peak = measured_step(step, data)
        losses.append(loss)
        peaks.append(peak)
        seconds.append(time.perf_counter() - before)
        ready = ready or time.perf_counter() - start
    if arguments.save:
        save_variables(model, arguments.save)
    compared = {}
    if arguments.compare_times:
        steps = {"plain": tf.function(model.train_step, jit_compile=False), "ours": step}
        if arguments.compare_unchanged:
            steps["unchanged"] = checkmate_tf.rematerialize(
                model.train_step, budget=_MUCH, trial_run=False, costs=arguments.costs
            )
        compared = alternate(steps, batches, arguments.compare_times)
    figures: dict[str, Any] = {
        "resident": resident, "losses": losses, "seconds": seconds, "peaks": peaks, "ready": ready,
        "compared_seconds": compared, "host_peak": _host_peak(),
    }  # fmt: skip
    plan = getattr(step, "plan", None)
    if plan is not None:
        figures["plan"] = describe_plan(plan)
    return figures


def _host_peak() -> int | None:
    """Bytes of the host's memory that this process took at most; None where nothing tells."""
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * getrusage(RUSAGE_SELF).ru_maxrss


def measured_step(step: Any, data: Any) -> tuple[float, int]:
    """Loss and peak in bytes of one step."""
    import checkmate_tf

    results: list[Any] = []
    peak = checkmate_tf.measure_peak(lambda: results.append(step(data)))
    return float(results[0]["loss"]), peak


def alternate(steps: dict[str, Any], batches: list[Any], count: int) -> dict[str, list[float]]:
    """Seconds of `count` runs of every step, in turn, because machines change their speed."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(count + 1):
        for name, step in steps.items():
            before = time.perf_counter()
            float(step(batches[number % len(batches)])["loss"])
            seconds[name].append(time.perf_counter() - before)
    return {name: each[1:] for name, each in seconds.items()}


def turn_off_fusions() -> None:
    """What makes a plain step repeat its own bits, and a rewritten one repeat them too.

    Grappler fuses differently around control edges. And where it reckons that a step takes more
    than 205 MB, whatever the machine has, its memory optimizer turns sums of three and more
    gradients into accumulations in whichever order they are ready. TensorFlow has no switch for
    that one but the switch for all, which aborts the process if oneDNN is on.
    """
    import tensorflow as tf

    if os.environ["TF_ENABLE_ONEDNN_OPTS"] == "0":
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
        return
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.optimizer.set_experimental_options(
        {"arithmetic_optimization": False, "remapping": False}
    )


def save_variables(model: Any, path: str) -> None:
    """All variables, optimizer's and metrics' too, in one file."""
    import numpy as np

    variables = [*model.variables, *model.optimizer.variables]
    # As positional arguments they are called arr_0, arr_1, … in their order.
    np.savez(path, *(np.asarray(each) for each in variables))


def describe_plan(plan: Any) -> dict[str, Any]:
    """The figures of a plan, for tables and pictures."""
    from solvers import Schedule, simulate

    graph = plan.graph
    return {
        "budget": plan.budget,
        "predicted_peak": plan.predicted_peak,
        "baseline_peak": plan.baseline_peak,
        "trial_run_peak": plan.measured_peak,
        "overhead": plan.overhead,
        "planned_overhead": plan.planned_overhead,
        "measured_overhead": plan.measured_overhead,
        "seconds": dict(plan.seconds),
        "nodes": len(graph),
        "recomputations": len(plan.schedule) - len(graph),
        "status": str(plan.solution.status),
        "solver_budget": plan.solution.budget,
        "bound": plan.solution.bound,
        "solver_seconds": plan.solution.seconds,
        "text": str(plan),
        "timeline": simulate(graph, plan.schedule).timeline.tolist(),
        "input_order_timeline": simulate(graph, Schedule(range(len(graph)))).timeline.tolist(),
    }


if __name__ == "__main__":
    sys.exit(main())
