"""Kinds, trained by a plan and plainly in this process: bits, peaks, and what was said.

    python -m experiments.coverage.trial "grouped convolution" --output rows.json

The allocator's past would be in the peaks, so for those each kind needs a process of its own. For
bits, `--small` will do for many at once: small networks, the least memory, no trial run.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # before TensorFlow starts
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "true"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import held_bytes, run_measured
from checkmate_tf.workloads.trial import turn_off_fusions
from experiments.coverage.kind import LARGE, SMALL, Decorate, Kind, Size, Training, variables
from experiments.coverage.kinds import KINDS
from experiments.coverage.planned import NAMED, SHARE, told, within
from solvers.graph.files import write_whole


@dataclass(frozen=True)
class Row:
    """What came out.

    Attributes:
        name, group: of the kind.
        outcome: the budget that was asked for and planned, "unchanged" where nothing can be
            recomputed, else the error.
        equal: whether results and variables are those of the plain step, to the last bit.
        recomputations: operations of the plan that run again.
        plain, ours: bytes that the second training held at most, by the allocator.
        resident, budget, predicted: bytes, of the plan; 0 where there is none.
        overhead: planned extra time, as a share.
        messages: what was warned of, and the plan's notes.
    """

    name: str
    group: str
    outcome: str
    equal: bool
    recomputations: int = 0
    plain: int = 0
    ours: int = 0
    resident: int = 0
    budget: int = 0
    predicted: int = 0
    overhead: float = 0.0
    messages: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Trained:
    """Results and variables after two trainings, and the peak of the second one."""

    values: list[Any]
    peak: int
    resident: int


def try_kind(kind: Kind, size: Size, budgets: Sequence[Any], **options: Any) -> Row:
    """Train `kind` by a plan, then plainly.

    Args:
        kind: the row.
        size: how large it is made.
        budgets: the first one that some plan keeps is taken.
        options: of `rematerialize`, for instance `time_limit`.
    """
    try:
        planned = within(budgets, lambda decorate: _trained(kind.make, size, decorate), **options)
    except Exception as error:
        return Row(kind.name, kind.group, told(error), False)
    ours, plan = planned.result, planned.plan
    gc.collect()
    plain = _trained(kind.make, size, plainly)
    equal = [each.tobytes() for each in ours.values] == [each.tobytes() for each in plain.values]
    row = Row(
        kind.name,
        kind.group,
        planned.asked,
        equal,
        plain=plain.peak,
        ours=ours.peak,
        resident=ours.resident,
        messages=planned.messages,
    )
    if plan is None:
        return row
    return replace(
        row,
        recomputations=len(plan.schedule) - len(plan.graph),
        budget=plan.budget,
        predicted=plan.predicted_peak,
        overhead=plan.overhead,
    )


def plainly(step: Any, **_: Any) -> Any:
    """The step as users run it without us; Keras makes a function of a model's method by itself."""
    return step if hasattr(step, "__self__") else tf.function(step, jit_compile=False)


def _trained(make: Callable[[Size], Training], size: Size, decorate: Decorate) -> _Trained:
    keras.utils.set_random_seed(0)
    training = make(size)
    run = training.prepared(decorate)
    keras.utils.set_random_seed(1)
    written = variables(training.owners)
    start = _values(written)
    first = run()
    for variable, value in zip(written, start, strict=True):
        variable.assign(value)
    resident = held_bytes() or 0
    second, peak = run_measured(run, device="CPU:0")
    values = _values([*tf.nest.flatten([first, second]), *variables(training.owners)])
    return _Trained(values, peak, resident)


def _values(tensors: Sequence[Any]) -> list[Any]:
    return [np.asarray(tf.convert_to_tensor(each).numpy()) for each in tensors]


def main() -> int:
    """Try kinds as the arguments say, and write their rows."""
    parser = argparse.ArgumentParser(description="kinds of train steps")
    parser.add_argument("kinds", nargs="+", choices=KINDS, metavar="KIND")
    parser.add_argument("--small", action="store_true", help="for bits, not for memory")
    parser.add_argument("--time-limit", type=float, default=5.0, help="of the solver, in seconds")
    parser.add_argument("--output", required=True)
    arguments = parser.parse_args()
    turn_off_fusions()
    options: dict[str, Any] = {"time_limit": arguments.time_limit}
    budgets: list[Any] = [SHARE, NAMED, "min"]
    if arguments.small:
        size, budgets, options["trial_run"] = SMALL, ["min"], False
    else:
        size = LARGE
        current_device().reserve(1 << 31)
    # What is imported stays: each of many collections would go through all of it.
    gc.collect()
    gc.freeze()
    rows = [asdict(try_kind(KINDS[each], size, budgets, **options)) for each in arguments.kinds]
    here = f"{Path.cwd()}/"  # messages name files
    write_whole(arguments.output, json.dumps(rows, indent=1).replace(here, ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
