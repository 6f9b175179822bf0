"""A training step, plain and by a plan, in turn: bits, peaks, times."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from checkmate_tf.decorator import rematerialize
from checkmate_tf.devices.measure import held_bytes, measure_peak
from checkmate_tf.doctor.finding import Finding
from checkmate_tf.phases import in_words
from checkmate_tf.planning.kept.plan_store import VARIABLE
from checkmate_tf.plans.plan import Plan
from checkmate_tf.workloads.models import compile_model, residual
from checkmate_tf.workloads.trial import alternate
from profiles.devices import default_device
from profiles.tensorflow_internals import one_dnn_is_on
from solvers import format_bytes

SHARE = 0.75
"""Of what the plain step adds to what is held: the budget, well above the least for this step."""

_COMPARED = 3
"""Steps after which bits are compared, and of which each peak is measured."""

_ROUNDS = 10
"""Steps of which the median time is taken, in turn."""

_ROUNDING = 1e-3
"""Distance of results that rounding can explain, as a share of what the steps have changed."""


@dataclass(frozen=True)
class Size:
    """Of the step: a residual net of `blocks` blocks, on `batch` images of `side` × `side`.

    It is below 205 MB, above which TensorFlow itself adds gradients in the order in which they are
    ready.
    """

    batch: int = 32
    side: int = 32
    blocks: int = 3

    def __str__(self) -> str:
        images = f"{self.batch} × {self.side}² × 3"
        return f"residual net of {self.blocks} blocks, {images}, float32, SGD with momentum"


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


_COMPILED = Size(batch=16, blocks=3)
"""Of the step that XLA compiles, which takes it a second for each plan and block.

With two blocks no plan takes less by the compiler of TensorFlow 2.16.
"""


def step() -> Finding:
    """A step that TensorFlow's executor runs."""
    return _finding(Size(), compiled=False)


def compiled_step() -> Finding:
    """A smaller one, compiled by XLA (`jit_compile=True`)."""
    return _finding(_COMPILED, compiled=True)


def _finding(size: Size, compiled: bool) -> Finding:
    os.environ[VARIABLE] = "off"  # a plan that is made now, and is not left behind
    without_fusions()
    seen = compare(size, compiled)
    wrong = what_is_wrong(seen, exact=not one_dnn_is_on() and default_device() == "CPU:0")
    return Finding(not wrong, wrong or "works", (("step", str(size)), *facts_of(seen)))


def without_fusions() -> None:
    """Let bits be compared: else Grappler fuses differently around a plan's control edges."""
    off = {"arithmetic_optimization": False, "remapping": False}
    tf.config.optimizer.set_experimental_options(off)


def compare(
    size: Size, compiled: bool, time_limit: float = 30.0, share: float = SHARE
) -> Comparison:
    """Train both steps from the same start on the same images.

    Args:
        size: of the step.
        compiled: by XLA.
        time_limit: seconds for the solver.
        share: the budget, of what the plain step adds to what is held.

    Raises:
        CheckmateError: the step can't be planned.
    """
    keras.utils.set_random_seed(1)
    model = compile_model(residual(size.side, size.blocks), "text")  # its outputs are logits
    batches = [_batch(size, seed) for seed in range(_COMPARED)]
    model.train_step(batches[0])  # makes what is made at the first step
    variables = [*model.variables, *model.optimizer.variables]
    start = [each.numpy() for each in variables]
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
        expected, plain_peak = _trained(plain, batches, variables, start)
        repeated, _ = _trained(plain, batches, variables, start)
        values, peak = _trained(ours, batches, variables, start)
        seconds = alternate({"plain": plain, "ours": ours}, batches, _ROUNDS)
    said = [str(each.message) for each in caught]
    return Comparison(
        plan=planned.plan,
        compiled=compiled,
        peaks=None if plain_peak is None or peak is None else (plain_peak, peak),
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
    rows = []
    if plan is not None:
        added = f"what is held, and {100 * SHARE:.0f} % of what the plain step adds"
        rows.append(("budget", f"{format_bytes(plan.budget)}: {added}"))
    if seen.compiled and plan is not None and plan.compiled_peak is not None:
        sizes = plan.compiled_baseline_peak or 0, plan.compiled_peak
        rows.append(("peak, by compiler", _pair(*map(format_bytes, sizes))))
    peaks = "not counted" if seen.peaks is None else _pair(*map(format_bytes, seen.peaks))
    rows.append(("peak, measured", peaks))
    rows.append((f"after {_COMPARED} steps", _bits(seen)))
    times = _pair(f"{1000 * plain:.1f} ms", f"{1000 * ours:.1f} ms")
    rows.append(("time of a step", f"{times} (× {ours / plain:.2f}), medians of {_ROUNDS}"))
    if plan is not None:
        rows.append(("extra time", f"{100 * plan.overhead:.1f} % predicted"))
        if plan.seconds:
            rows.append(("planned in", in_words(plan.seconds)))
        rows += [("note", note) for note in plan.notes]
    notes = () if plan is None else plan.notes
    return [*rows, *(("said", each) for each in seen.said if not each.endswith(notes))]


def _pair(plain: str, ours: str) -> str:
    return f"{plain} plain, {ours} by the plan"


def _bits(seen: Comparison) -> str:
    repeats = "" if seen.repeats else "; the plain step does not repeat its own bits"
    if not seen.different:
        return f"bits of {seen.variables} variables are equal{repeats}"
    which = f"bits of {seen.different} of {seen.variables} variables differ"
    return f"{which}, by {seen.distance:.0e} of what the steps change{repeats}"


def _batch(size: Size, seed: int) -> tuple[tf.Tensor, tf.Tensor]:
    generator = np.random.default_rng(seed)
    images = generator.normal(size=(size.batch, size.side, size.side, 3))
    return tf.constant(images, tf.float32), tf.constant(generator.integers(0, 10, size.batch))


def _trained(
    function: Callable[..., Any], batches: list[Any], variables: list[Any], start: list[Any]
) -> tuple[list[Any], int | None]:
    """All variables after a step on each batch, from `start`, and the most bytes held."""
    for variable, value in zip(variables, start, strict=True):
        variable.assign(value)
    if held_bytes() is None:
        for data in batches:
            function(data)
        peak = None
    else:
        peak = max(measure_peak(function, data) for data in batches)
    return [each.numpy() for each in variables], peak


def _different(expected: list[Any], values: list[Any]) -> int:
    """How many variables differ in any bit."""
    pairs = zip(expected, values, strict=True)
    return sum(one.tobytes() != other.tobytes() for one, other in pairs)


def distance_of_results(expected: list[Any], values: list[Any], start: list[Any]) -> float:
    """‖values − expected‖ / ‖expected − start‖ over all floating-point variables together."""
    apart = changed = 0.0
    for one, other, before in zip(expected, values, start, strict=True):
        if np.issubdtype(one.dtype, np.floating):
            apart += float(np.sum((other.astype(np.float64) - one) ** 2))
            changed += float(np.sum((one.astype(np.float64) - before) ** 2))
    return float(np.sqrt(apart / (changed or 1.0)))
