"""A step with and without a plan, compiled by XLA for this machine's CPU: bytes, bits and time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from experiments.xla.steps import Row, data_of, model_of

_COMPARED_STEPS = 3


@dataclass(frozen=True)
class Planned:
    """A train step with and without its plan, both to be compiled by XLA.

    Attributes:
        model, data: what is trained.
        plain, planned: of type tf.function.
        plan: the one of `planned`.
        sizes: a TensorSpec for each input.
        seconds: that the plan took.
    """

    model: Any
    data: tuple[Any, Any]
    plain: Any
    planned: Any
    plan: Any
    sizes: list[Any]
    seconds: float


def planned_step(row: Row, time_limit: float) -> Planned:
    """The model of a row, and its train step with and without a plan."""
    import tensorflow as tf

    import checkmate_tf

    model, data = model_of(row), data_of(row)
    model.train_step(data)  # makes what is made at the first step
    step = checkmate_tf.rematerialize(
        model.train_step, budget=row.share, time_limit=time_limit, on_infeasible="min"
    )
    plain = tf.function(model.train_step, jit_compile=True)
    planned = tf.function(lambda given: step(given), jit_compile=True)
    began = time.perf_counter()
    planned.get_concrete_function(data)
    seconds = time.perf_counter() - began
    sizes = [tf.TensorSpec(each.shape, each.dtype) for each in data]
    return Planned(model, data, plain, planned, step.plan, sizes, seconds)


def figures(
    row: Row, time_limit: float = 60.0, times: bool = True, float64: bool = False
) -> dict[str, Any]:
    """Figures of one row: bytes, compilations, variables that differ, seconds.

    Args:
        row: what is compiled.
        time_limit: of the solver, in seconds.
        times: whether steps are timed.
        float64: whether both steps are compared with the same steps in float64, too.
    """
    from checkmate_tf.doctor.steps import distance_of_results
    from profiles.measure.compilation import compiled_memory

    step = planned_step(row, time_limit)
    model, data, plan = step.model, step.data, step.plan
    began = time.perf_counter()
    plain_memory = compiled_memory(step.plain.get_concrete_function(data), step.sizes)
    plain_seconds = time.perf_counter() - began
    planned = step.planned.get_concrete_function(data)
    began = time.perf_counter()
    memory = compiled_memory(planned, step.sizes)
    seconds = time.perf_counter() - began
    variables = [*model.variables, *model.optimizer.variables]
    start = [each.numpy() for each in variables]
    expected, values = (
        _trained(each, data, variables, start) for each in (step.plain, step.planned)
    )
    pairs = zip(expected, values, strict=True)
    resident = plan.compiled_peak - memory.added
    predicted = plan.predicted_peak - resident
    slowdown = _slowdown(step.plain, step.planned, data) if times else None
    exact = in_float64(row, start) if float64 else None
    return {
        "temporary": memory.temporary,
        "plain_temporary": plain_memory.temporary,
        "got": memory.temporary / plain_memory.temporary,
        "kept": plan.compiled_peak <= plan.budget,
        "compilations": plan.compilations,
        "forecast_error": predicted / memory.added - 1,
        "overhead": plan.overhead,
        "plain_compile_seconds": plain_seconds,
        "plan_seconds": step.seconds,
        "solve_seconds": plan.seconds.get("solve", 0.0),
        "compile_seconds": seconds,
        "variables": len(variables),
        "different": sum(one.tobytes() != other.tobytes() for one, other in pairs),
        "distance": distance_of_results(expected, values, start),
        "slowdown": slowdown,
        "from_float64": [distance_of_results(exact, each, start) for each in (expected, values)]
        if exact
        else None,
    }


def in_float64(row: Row, start: list[Any]) -> list[Any]:
    """All variables after the compared steps in float64, without XLA.

    Dropout draws other numbers in float64, and would be compared with something else.

    Args:
        row: a model without dropout. What Keras makes from now on is float64.
        start: the variables before the first step.
    """
    import keras
    import tensorflow as tf

    keras.config.set_floatx("float64")  # of the loss
    model = model_of(replace(row, precision="float64"))
    images, labels = data_of(row)
    data = tf.cast(images, tf.float64), labels
    model.train_step(data)
    variables = [*model.variables, *model.optimizer.variables]
    return _trained(tf.function(model.train_step), data, variables, start)


def _trained(
    function: Callable[[Any], Any], data: Any, variables: list[Any], start: list[Any]
) -> list[Any]:
    """All variables after the compared steps, from `start`."""
    for variable, value in zip(variables, start, strict=True):
        variable.assign(value)
    for _ in range(_COMPARED_STEPS):
        function(data)
    return [each.numpy() for each in variables]


def _slowdown(plain: Any, planned: Any, data: Any, rounds: int = 9) -> float:
    """Ratio of the medians of steps that run in turn."""
    seconds: dict[Any, list[float]] = {plain: [], planned: []}
    for _ in range(rounds):
        for function, taken in seconds.items():
            began = time.perf_counter()
            function(data)
            taken.append(time.perf_counter() - began)
    return median(seconds[planned]) / median(seconds[plain])
