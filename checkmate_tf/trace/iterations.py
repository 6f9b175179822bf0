"""How often a loop's body runs at most, where the graph tells it."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from checkmate_tf.trace.bodies import LOOPS, Body, bodies, condition
from checkmate_tf.trace.depth_first import tensor_key
from checkmate_tf.trace.operations import under_views

_COUNTER = 0
"""The output of a loop that says how often it ran."""

_MOST_ITERATIONS = 1
"""The input of a loop that says how often it runs at most; negative where nothing does."""


def most_iterations(loop: Any) -> int | None:
    """How often the body of a loop runs at most; None where nothing tells.

    Example:
        >>> import tensorflow as tf
        >>> step = tf.function(lambda x: tf.while_loop(
        ...     lambda i, y: i < 7, lambda i, y: (i + 2, tf.sin(y)), (0, x)))
        >>> graph = step.get_concrete_function(tf.TensorSpec(())).graph
        >>> [most_iterations(each) for each in graph.get_operations() if "While" in each.type]
        [4]
    """
    told = number_of(loop.inputs[_MOST_ITERATIONS])
    return _counted(loop) if told is None else told


def number_of(tensor: Any) -> int | None:
    """The number that a tensor made of constants holds; None if none is known or it is negative."""
    value = tf.get_static_value(tensor)
    if value is None and tensor.op.type == "Max":  # by which Keras counts the steps of a loop
        numbers = tf.get_static_value(tensor.op.inputs[0])
        value = None if numbers is None else np.max(numbers)
    return int(value) if value is not None and np.ndim(value) == 0 and value >= 0 else None


def _counted(loop: Any) -> int | None:
    """Of a loop that counts up to a number; with several conditions, the first that ends it."""
    test, (body,) = condition(loop), bodies(loop)
    found = []
    pending = [test.outputs[0]]
    while pending:
        tensor = under_views(pending.pop())
        if tensor.op.type == "LogicalAnd":
            pending += tensor.op.inputs
        elif tensor.op.type in ("Less", "LessEqual"):
            found.append(_count(loop, test, body, tensor.op))
    return min((each for each in found if each is not None), default=None)


def _count(loop: Any, test: Body, body: Body, comparison: Any) -> int | None:
    """How often `comparison` holds, if it is between a counter and a number that stays."""
    counter = _place(test, comparison.inputs[0])
    end = _number_in(test, comparison.inputs[1], loop, body)
    if counter is None or end is None:
        return None
    start, step = number_of(loop.inputs[counter]), _step(loop, body, counter)
    if start is None or not step:
        return None
    last = end - 1 if comparison.type == "Less" else end
    return max(0, (last - start) // step + 1)


def _step(loop: Any, body: Body, place: int) -> int | None:
    """By how much an iteration increases what is at `place`; None if it does something else."""
    made = under_views(body.outputs[place]).op
    if made.type not in ("Add", "AddV2") or not made.outputs[0].dtype.is_integer:
        return None
    others = [each for each in made.inputs if _place(body, each) != place]
    return _number_in(body, others[0], loop, body) if len(others) == 1 else None


def _number_in(function: Body, tensor: Any, loop: Any, body: Body) -> int | None:
    """The number that a tensor of the condition or the body is in every iteration, at most."""
    place = _place(function, tensor)
    if place is None:
        return number_of(tensor)
    if _place(body, body.outputs[place]) != place:
        return None
    given = under_views(loop.inputs[place])
    if given.op.type in LOOPS and given.value_index == _COUNTER:
        return most_iterations(given.op)  # a gradient goes back as often
    return number_of(given)


def _place(body: Body, tensor: Any) -> int | None:
    """The number of the input that `tensor` is."""
    key = tensor_key(under_views(tensor))
    return next((n for n, each in enumerate(body.inputs) if tensor_key(each) == key), None)
