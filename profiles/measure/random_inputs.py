"""Made-up inputs on which an operation can run: indices within bounds, numbers under a root."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from profiles.nested import Nested
from profiles.operation import Operation, TensorSize
from profiles.operation_facts import facts


class NotMeasurableError(ValueError):
    """The operation can't run by itself on made-up inputs."""


def random_inputs(operation: Operation, equal: bool = False) -> dict[int, Any]:
    """A tensor for every input of `operation` that is not known in advance, by its number.

    Floating-point numbers are from 0.1 to 1, indices and labels anywhere within their bounds,
    truth values of both kinds; other integers are 0, which is valid where few others are. A
    handle is that of a variable, returned here, of what a function reads from it, else as large
    as the largest other input. The values are the same every time. With `equal`, floating-point
    numbers are all equal, which takes a tenth of the time.

    Raises:
        NotMeasurableError: an input's size or content depends on data.
    """
    known = dict(operation.constants)
    generator = np.random.default_rng(0)
    bounds = _bounds(operation)
    return {
        number: _variable(operation, number)
        if size.dtype == "resource"
        else _random(operation, size, bounds.get(number, 1), generator, equal)
        for number, size in enumerate(operation.inputs)
        if number not in known
    }


def _random(
    operation: Operation, size: TensorSize, bound: int, generator: Any, equal: bool = False
) -> Any:
    dtype = tf.as_dtype(size.dtype)
    if any(length < 0 for length in size.shape) or dtype in (tf.variant, tf.string):
        raise NotMeasurableError(f"{operation.type} reads {size.dtype} of shape {size.shape}")
    if dtype.is_floating and equal:
        return tf.fill(size.shape, tf.constant(0.5, dtype))
    if dtype.is_floating:
        # Stateless, or the user's own random numbers would be others after a measurement.
        return tf.random.stateless_uniform(size.shape, (0, 0), 0.1, 1.0, dtype)
    if dtype == tf.bool:
        # Of eight bytes each, an attention's mask of a large batch takes more than the host has.
        return tf.constant(generator.integers(0, 2, size.shape, dtype=bool))
    return tf.cast(generator.integers(0, bound, size.shape), dtype)


def _bounds(operation: Operation) -> dict[int, int]:
    """Under which its indices must be, by number of the input that holds them."""
    inputs, known, rule = operation.inputs, dict(operation.constants), facts(operation.type).indices
    if isinstance(rule, tuple):
        held_by, under = rule
        return {held_by: known.get(under, 1)}
    if rule == "classes":
        return {1: inputs[0].shape[-1]}
    if rule == "along axis":
        return {1: inputs[0].shape[known.get(2, 0)]}
    return {1: min(inputs[0].shape[: inputs[1].shape[-1]])} if rule == "along axes" else {}


def _variable(operation: Operation, number: int) -> Any:
    """A variable that an operation can write into, or that the function that it runs can read."""
    if isinstance(operation, Nested) and number in dict(operation.contents):
        content = dict(operation.contents)[number]
        return tf.Variable(_random(operation, content, 1, np.random.default_rng(0)))
    if facts(operation.type).variable not in ("overwrites", "adds"):
        raise NotMeasurableError(f"{operation.type} reads a handle of what it does not say")
    values = [size for size in operation.inputs if size.dtype != "resource"]
    value = max(values, key=lambda size: math.prod(size.shape))
    return tf.Variable(_random(operation, value, 1, np.random.default_rng(0)))
