"""The arguments of `largest_batch`, checked before any work is done."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import tensorflow as tf

from checkmate_tf.batches.examples import ExampleBatch, example_batch
from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.graph.cost_models import MEASURED_HERE, default_costs
from checkmate_tf.step import RematerializedStep
from checkmate_tf.trace.keras_models import is_model
from checkmate_tf.trace.no_steps import why_no_step
from profiles.tensorflow_internals import is_compiled_by_xla
from solvers import Budget, BudgetError, CheckmateError, format_bytes, parse_budget

ELSEWHERE = "planned for another device"
"""Why nothing is to run on this one."""


@dataclass(frozen=True)
class Target:
    """A step, and the Keras model that it belongs to, if any."""

    function: Callable[..., Any]
    model: Any

    @property
    def is_compiled(self) -> bool:
        """Whether XLA compiles it where it trains, as is Keras' default on a GPU."""
        if self.model is None:
            return is_compiled_by_xla(self.function)
        has_one_replica = self.model.distribute_strategy.num_replicas_in_sync == 1
        return bool(getattr(self.model, "jit_compile", False) is True and has_one_replica)


def parse_step(step: Any) -> Target:
    """Understand a step: a function, a compiled Keras model, or what `rematerialize` returned.

    Raises:
        CheckmateError: it is none of these.
    """
    if is_model(step):
        if not getattr(step, "compiled", False):
            raise CheckmateError(
                "model-not-compiled",
                f"the model {step.name!r} is not compiled, so it has no train step yet: call "
                "model.compile(…) first",
            )
        step = step.train_step
    if isinstance(step, RematerializedStep):
        step = step.function
    if why := why_no_step(step):
        raise CheckmateError("not-a-step", why)
    if not callable(step):
        raise CheckmateError(
            "not-a-step",
            f"{step!r} is no step; give the function of a train step, or a compiled Keras model",
        )
    owner = getattr(step, "__self__", None)
    return Target(step, owner if is_model(owner) else None)


@dataclass(frozen=True)
class Given:
    """What a step is called with, as it was given.

    Attributes:
        arguments: positional ones: arrays, tensors, `tf.TensorSpec`s, and structures of these.
        names: of the parameters that they are bound to.
        floats: the type that arrays of floating-point numbers are turned into; None for none.
    """

    arguments: tuple[Any, ...]
    names: tuple[str, ...]
    floats: str | None = None


def parse_batch(batch: Any, target: Target) -> ExampleBatch | None:
    """Understand an example batch; None where the step's own signature says what it takes.

    Raises:
        CheckmateError: there is none, or it doesn't fit the step, or has no batch dimension.
    """
    given = parse_example(batch, target)
    return None if given is None else example_batch(given.arguments, given.names, given.floats)


def parse_example(batch: Any, target: Target) -> Given | None:
    """As `parse_batch`, of arguments that need not have a batch dimension.

    Where there is none, a Keras model's inputs and losses tell it.

    Raises:
        CheckmateError: there are none, or they don't fit the step.
    """
    function = target.function
    is_traced = isinstance(function, tf.types.experimental.ConcreteFunction)
    if batch is None and (is_traced or getattr(function, "input_signature", None) is not None):
        return None
    if batch is None and target.model is not None:
        from checkmate_tf.sizing.model_batches import batch_of_model

        batch = batch_of_model(target.model)
    if batch is None:
        raise CheckmateError(
            "argument-missing",
            "batch= is missing: give an example of what the step is called with, arrays or "
            "tf.TensorSpec((None, …))",
        )
    if isinstance(batch, tf.data.Dataset):
        batch = batch.element_spec
    if target.model is not None:
        import keras

        return Given((batch,), ("data",), keras.backend.floatx())
    arguments = batch if isinstance(batch, tuple) else (batch,)
    return Given(arguments, _names(function, arguments))


def _names(function: Any, arguments: tuple[Any, ...]) -> tuple[str, ...]:
    """Of the parameters that positional arguments are bound to."""
    try:
        signature = inspect.signature(getattr(function, "python_function", function))
    except (TypeError, ValueError):  # not written in Python
        return tuple(f"argument {number}" for number in range(len(arguments)))
    try:
        bound = signature.bind(*arguments)
    except TypeError as error:
        raise CheckmateError(
            "example-does-not-fit",
            f"the example doesn't fit the step: {error}; a tuple is its positional arguments, "
            "all else is its only one",
        ) from error
    names: list[str] = []
    for name, value in bound.arguments.items():
        is_rest = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
        names += [f"{name}[{number}]" for number in range(len(value))] if is_rest else [name]
    return tuple(names)


def parse_costs(costs: Any, not_here: str) -> Any:
    """The costs of a step, where they are given; `not_here` says why nothing is to run, if so.

    Raises:
        CheckmateError: they are measured on this device all the same.

    Example:
        >>> parse_costs(None, ELSEWHERE)
        'roofline'
    """
    if costs is None:
        return default_costs(elsewhere=bool(not_here))
    if not_here and costs in MEASURED_HERE:
        raise CheckmateError(
            "costs-measured-here",
            f"costs={costs!r} measures on this device ({not_here}); give 'roofline', "
            "'roofline:GPU', 'flops', or what checkmate_tf.load_profile returns",
        )
    return costs


def parse_overhead(overhead: Any) -> float | None:
    """Understand an overhead: a share like 0.2 or "20%", or None for one more forward pass.

    Raises:
        CheckmateError: it is none of these.

    Example:
        >>> parse_overhead("20%")
        0.2
    """
    if overhead is None:
        return None
    given = overhead
    if isinstance(overhead, str):
        try:
            is_percent = overhead.strip().endswith("%")
            overhead = float(overhead.strip().rstrip("%")) / (100 if is_percent else 1)
        except ValueError:
            overhead = math.nan
    is_number = isinstance(overhead, Real) and not isinstance(overhead, bool)
    if not (is_number and 0 <= overhead < math.inf):
        raise CheckmateError(
            "argument-invalid",
            f"overhead is {given!r}; give the extra time as a share of a step, like 0.2 or "
            "'20%', or leave it out for one more forward pass",
        )
    return float(overhead)


def parse_bytes(budget: Any, device_memory: Any) -> int:
    """Bytes that a step may hold.

    Args:
        budget: bytes; of another device also a share of its memory; None for all of it.
        device_memory: of a device that is not there; None for this one.

    Raises:
        BudgetError: it is no number of bytes, or more than the device has.

    Example:
        >>> parse_bytes("50%", "16GiB") == 8 * 1024**3
        True
    """
    if budget is None and device_memory is None:
        raise BudgetError(
            "argument-missing", "budget= is missing: give bytes ('16GiB'), or device_memory="
        )
    asked = None if budget is None else parse_budget(budget)
    if asked is not None and (asked.least or (asked.share is not None and device_memory is None)):
        raise BudgetError(
            "budget-not-in-bytes",
            f"budget {budget!r} says nothing before the batch is known; give bytes, like '16GiB'",
        )
    if device_memory is None:
        assert asked is not None
        assert asked.bytes is not None
        return asked.bytes
    memory = parse_budget(device_memory).bytes
    if memory is None:
        raise BudgetError(
            "argument-invalid", f"device_memory is {device_memory!r}; give bytes, like '16GiB'"
        )
    size = (asked or Budget(share=1.0)).in_bytes(0, memory)
    if size > memory:
        raise BudgetError(
            "budget-above-the-device",
            f"the budget of {format_bytes(size, memory)} is more than the device's memory of "
            f"{format_bytes(memory, size)}",
        )
    return size


def why_not_here(device_memory: Any, budget: int) -> str:
    """Why no plan of `budget` bytes can be tried on this device; "" if one can."""
    if device_memory is not None:
        return ELSEWHERE
    free = current_device().free()
    there = None if free is None else free + (held_bytes() or 0)
    if there is not None and there < budget:
        return f"{format_bytes(there, budget)} are free here, less than the budget"
    return ""
