"""A training step, plain and by a plan, in turn: bits, peaks, times."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from statistics import median
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from checkmate_tf.decorator import rematerialize
from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import held_bytes, measure_peak
from checkmate_tf.doctor.finding import Finding
from checkmate_tf.phases import in_words
from checkmate_tf.planning.kept.plan_store import VARIABLE
from checkmate_tf.plans.plan import Plan
from checkmate_tf.workloads.models import compile_model, residual
from checkmate_tf.workloads.trial import alternate
from profiles.tensorflow_internals import one_dnn_is_on
from solvers import format_bytes

SHARE = 0.75
"""Of what the plain step adds to what is held: the budget, well above the least for this step."""

_BLOCKS, _SIDE = 3, 32
"""Of the step's residual net, and of its images.

It is below 205 MB, above which TensorFlow itself adds gradients in the order in which they are
ready. With two blocks no plan of a compiled step takes less by the compiler of TensorFlow 2.16.
"""

_COMPARED = 3
"""Steps after which bits are compared, and of which each peak is measured."""

_ROUNDS = 10
"""Steps of which the median time is taken, in turn."""

_ROUNDING = 1e-3
"""Distance of results that rounding can explain, as a share of what the steps have changed."""


@dataclass(frozen=True)
class Comparison:
    """What was seen of both steps.

    Attributes:
        plan: of the rematerialized one; None where none was made.
        compiled: by XLA.
        peaks: bytes at most, plain and by the plan; None where nothing counts them.
        different: variables that differ after a few steps.
        variables: all.
        distance: of the results, as a share of what the steps have changed.
        repeats: the plain step repeats its own bits.
        seconds: median times, plain and by the plan.
        said: warnings.
    """

    plan: Plan | None
    compiled: bool
    peaks: tuple[int, int] | None
    different: int
    variables: int
    distance: float
    repeats: bool
    seconds: tuple[float, float]
    said: tuple[str, ...] = ()


def step() -> Finding:
    """A step that TensorFlow's executor runs."""
    return _finding(batch=32, compiled=False)


def compiled_step() -> Finding:
    """A smaller one, compiled by XLA (`jit_compile=True`), which takes a second for each plan."""
    return _finding(batch=16, compiled=True)


def _finding(batch: int, compiled: bool) -> Finding:
    os.environ[VARIABLE] = "off"  # a plan that is made now, and is not left behind
    # Let bits be compared: else Grappler fuses differently around a plan's control edges.
    off = {"arithmetic_optimization": False, "remapping": False}
    tf.config.optimizer.set_experimental_options(off)
    seen = compare(batch, compiled)
    wrong = what_is_wrong(seen, exact=not one_dnn_is_on() and current_device().is_host)
    size = f"residual net of {_BLOCKS} blocks, {batch} × {_SIDE}² × 3, float32, SGD with momentum"
    return Finding(not wrong, wrong or "works", (("step", size), *facts_of(seen)))


def compare(
    batch: int,
    compiled: bool,
    side: int = _SIDE,
    time_limit: float = 30.0,
    share: float = SHARE,
) -> Comparison:
    """Train both steps from the same start on the same images.

    Args:
        batch: how many images.
        compiled: by XLA.
        side: of the images.
        time_limit: seconds for the solver.
        share: the budget, of what the plain step adds to what is held.

    Raises:
        CheckmateError: the step can't be planned.
    """
    keras.utils.set_random_seed(1)
    model = compile_model(residual(side, _BLOCKS), "text")  # its outputs are logits
    batches = []
    for generator in map(np.random.default_rng, range(_COMPARED)):
        images = tf.constant(generator.normal(size=(batch, side, side, 3)), tf.float32)
        batches.append((images, tf.constant(generator.integers(0, 10, batch))))
    model.train_step(batches[0])  # makes what is made at the first step
    variables = [*model.variables, *model.optimizer.variables]
    start = [each.numpy() for each in variables]

    def trained(function: Callable[..., Any]) -> tuple[list[Any], list[int]]:
        """All variables after a step on each batch, from `start`, and the most bytes of each."""
        for variable, value in zip(variables, start, strict=True):
            variable.assign(value)
        if held_bytes() is None:
            peaks = [0 for data in batches if function(data)]
        else:
            peaks = [measure_peak(function, data) for data in batches]
        return [each.numpy() for each in variables], peaks

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        planned = rematerialize(
            model.train_step,
            budget=share,
            time_limit=time_limit,
            on_infeasible="min",
            verbose=0,
        )
        plain = tf.function(model.train_step, jit_compile=compiled)
        ours = tf.function(lambda data: planned(data), jit_compile=True) if compiled else planned
        for function in (ours, plain):
            function(batches[0])  # traces, and plans
        (expected, plain_peaks), (repeated, _), (values, peaks) = map(trained, (plain, plain, ours))
        seconds = alternate({"plain": plain, "ours": ours}, batches, _ROUNDS)
    said = [str(each.message) for each in caught]
    return Comparison(
        plan=planned.plan,
        compiled=compiled,
        peaks=None if held_bytes() is None else (max(plain_peaks), max(peaks)),
        different=_different(expected, values),
        variables=len(variables),
        distance=distance_of_results(expected, values, start),
        repeats=not _different(expected, repeated),
        seconds=(median(seconds["plain"]), median(seconds["ours"])),
        said=tuple(dict.fromkeys(each for each in said if each.startswith("checkmate_tf"))),
    )


def what_is_wrong(seen: Comparison, exact: bool) -> str:
    """What the plan does that it should not, and what to do; "" where all is well.

    Args:
        seen: both steps, side by side.
        exact: kernels repeat their bits, so that none may differ where XLA does not compile.
    """
    plan = seen.plan
    if plan is None:
        return "no plan was made: attach this report to a bug report"
    wrong = []
    if seen.compiled:
        # How much of so small a step XLA lets go is a matter of its release, which a note tells.
        before, held = plan.compiled_baseline_peak, plan.compiled_peak
        if held is not None and before is not None and held >= before:
            wrong.append("no plan takes less than the step as it is: train without XLA")
    elif seen.peaks is not None and seen.peaks[1] > plan.budget:
        held = seen.peaks[1]
        wrong.append(
            f"the step takes {format_bytes(held, plan.budget)} within a budget of "
            f"{format_bytes(plan.budget, held)}: "
            "leave as much between your budgets and what the device has"
        )
    is_rounding = seen.distance <= _ROUNDING and not (exact and seen.repeats and not seen.compiled)
    if seen.different and not is_rounding:
        wrong.append(
            f"results differ by {seen.distance:.0e} of what the steps change: don't train by "
            "plans here, and attach this report to a bug report"
        )
    return "; ".join(wrong)


def facts_of(seen: Comparison) -> list[tuple[str, str]]:
    """The figures, as rows."""
    plan, (plain, ours) = seen.plan, seen.seconds
    rows, after = [], []
    if plan is not None:
        added = f"what is held, and {100 * SHARE:.0f} % of what the plain step adds"
        rows.append(("budget", f"{format_bytes(plan.budget)}: {added}"))
        if seen.compiled and plan.compiled_peak is not None:
            sizes = plan.compiled_baseline_peak or 0, plan.compiled_peak
            rows.append(("peak, by compiler", _pair(*map(format_bytes, sizes))))
        after = [
            ("extra time", f"{100 * plan.planned_overhead:.1f} % predicted"),
            *([("planned in", in_words(plan.seconds))] if plan.seconds else []),
            *(("note", note) for note in plan.notes),
        ]
    peaks = "not counted" if seen.peaks is None else _pair(*map(format_bytes, seen.peaks))
    times = _pair(f"{1000 * plain:.1f} ms", f"{1000 * ours:.1f} ms")
    return [
        *rows,
        ("peak, measured", peaks),
        (f"after {_COMPARED} steps", _bits(seen)),
        ("time of a step", f"{times} (× {ours / plain:.2f}), medians of {_ROUNDS}"),
        *after,
        *(("said", each) for each in seen.said if not (plan and each.endswith(plan.notes))),
    ]


def _pair(plain: str, ours: str) -> str:
    return f"{plain} plain, {ours} by the plan"


def _bits(seen: Comparison) -> str:
    repeats = "" if seen.repeats else "; the plain step does not repeat its own bits"
    if not seen.different:
        return f"bits of {seen.variables} variables are equal{repeats}"
    which = f"bits of {seen.different} of {seen.variables} variables differ"
    return f"{which}, by {seen.distance:.0e} of what the steps change{repeats}"


def _different(expected: list[Any], values: list[Any]) -> int:
    """How many variables differ in any bit."""
    pairs = zip(expected, values, strict=True)
    return sum(one.tobytes() != other.tobytes() for one, other in pairs)


def distance_of_results(expected: list[Any], values: list[Any], start: list[Any]) -> float:
    """‖values − expected‖ / ‖expected − start‖ over all floating-point variables together."""
    floats = [np.issubdtype(each.dtype, np.floating) for each in expected]
    one, other, before = (
        np.concatenate([each.ravel().astype(np.float64) for each in compress(arrays, floats)])
        for arrays in (expected, values, start)
    )
    return float(np.linalg.norm(other - one) / (np.linalg.norm(one - before) or 1.0))
