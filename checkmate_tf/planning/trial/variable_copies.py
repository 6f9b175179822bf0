"""Copies of the variables of a traced step, and a way to run the step on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from checkmate_tf.devices.current import current_device
from checkmate_tf.trace.inputs import argument_placeholders, captures
from checkmate_tf.trace.side_effects import written_captures
from checkmate_tf.trace.sizes import tensor_bytes
from profiles.tensorflow_internals import call_with_captures, variable_content


def can_copy(concrete: Any) -> bool:
    """Whether what the step may write are plain variables, and all its variables have values."""
    captured = captures(concrete)
    if any(not hasattr(each, "numpy") or each.dtype == tf.variant for _, each in captured):
        return False  # of a graph that is being built; or a variant, in which handles may hide
    if any(each.dtype in (tf.resource, tf.variant) for each in argument_placeholders(concrete)):
        return False
    variables = [pair for pair in captured if variable_content(pair[0]) is not None]
    if any(variable_content(placeholder) is None for placeholder, _ in written_captures(concrete)):
        return False
    return all(tf.raw_ops.VarIsInitializedOp(resource=handle) for _, handle in variables)


def copy_written(concrete: Any) -> dict[str, tf.Variable]:
    """A copy of every variable that the step may write, by `resource_name` of the variable.

    A copy has the variable's bits, type and static shape, and lies on its device in a buffer of
    its own. The largest is made first, as variables are laid down (`planning.variable_places`).
    """
    written = [
        (handle, variable_content(placeholder))
        for placeholder, handle in written_captures(concrete)
    ]
    copies: dict[str, tf.Variable] = {}
    for handle, content in sorted(written, key=lambda each: -_bytes(*each)):
        if resource_name(handle) not in copies:
            copies[resource_name(handle)] = _copy(handle, content)
    return copies


def written_bytes(concrete: Any) -> int:
    """Bytes of the variables that the step may write."""
    written = {resource_name(handle): (p, handle) for p, handle in written_captures(concrete)}
    return sum(_bytes(handle, variable_content(p)) for p, handle in written.values())


def _bytes(handle: Any, content: Any) -> int:
    value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.as_dtype(content.dtype))
    return tensor_bytes(value.dtype, value.shape) or 0


def copied_bytes(copies: dict[str, tf.Variable]) -> int:
    """Bytes of the copies' values.

    What the allocator wasted on them does not count: it wastes as much on the variables, once
    training has moved them about.
    """
    return sum(tensor_bytes(each.dtype, each.value().shape) or 0 for each in copies.values())


def run_on_copies(
    concrete: Any, arguments: Sequence[Any], copies: dict[str, tf.Variable]
) -> list[Any]:
    """Call `concrete`, a function of flat arguments, with `copies` in place of its variables.

    It is the function itself that runs, with the kernels that it has: TensorFlow gives a
    function its captured tensors at every call, as further arguments. Nothing public takes other
    ones without changing the function, which an interrupt could then leave changed.

    Example:
        >>> import tensorflow as tf
        >>> variable = tf.Variable(1.0)
        >>> step = tf.function(lambda x: variable.assign_add(x))
        >>> concrete = step.get_concrete_function(tf.TensorSpec(()))
        >>> copies = copy_written(concrete)
        >>> outputs = run_on_copies(concrete, [tf.constant(2.0)], copies)
        >>> [float(each) for each in copies.values()], float(variable)
        ([3.0], 1.0)
    """
    captured = [
        copies[resource_name(each)].handle
        if each.dtype == tf.resource and resource_name(each) in copies
        else each
        for each in concrete.captured_inputs
    ]
    with current_device().as_planned():
        return call_with_captures(concrete, arguments, captured)


def resource_name(handle: Any) -> str:
    """What tells a resource from all others; two handles of one resource have one name."""
    return repr(handle)


def _copy(handle: Any, content: Any) -> tf.Variable:
    with tf.device(handle.device):
        # Else the copy would share the variable's buffer until one of them is written.
        value = tf.raw_ops.DeepCopy(
            x=tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.as_dtype(content.dtype))
        )
        return tf.Variable(value, trainable=False, shape=tf.TensorShape(content.shape))
