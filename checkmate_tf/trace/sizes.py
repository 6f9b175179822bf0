"""Sizes of tensors, also of a step that was traced for batches of any size."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from checkmate_tf.trace.bodies import LOOPS, bodies
from checkmate_tf.trace.emission import Emitter
from checkmate_tf.trace.inputs import argument_placeholders
from checkmate_tf.trace.tensor_lists import shape_of_elements
from profiles.operation_facts import facts
from profiles.tensorflow_internals import variable_content
from solvers.errors import CheckmateError
from solvers.graph.topological import topological_order

ArgumentSizes = int | tuple[tuple[int, ...], ...]
"""How large the arguments of a step are where its trace leaves it open: the first dimension of them
all, or the shape of each tensor among them."""

_PASS_IT = (
    "its batch size is not known when the step is traced. Pass batch_size=… to rematerialize (the "
    "largest batch that occurs), or batch the data set with drop_remainder=True"
)

_ENSURE = (
    "every dimension but the first must be known to plan memory. Say what it is where the data set "
    "is made: dataset.map(lambda x, y: (tf.ensure_shape(x, {shape}), y)), with numbers in the "
    "place of all but the first None"
)


def sized_operations(concrete: Any, sizes: ArgumentSizes | None) -> dict[str, Any]:
    """Every operation of `concrete` with known shapes, by the operation's name.

    Where the step was traced with unknown dimensions, all its operations are replayed onto
    inputs of these `sizes`, so that TensorFlow's own shape inference says every size. So are those
    of a step that takes its batches from an iterator, if a batch size is given.

    Raises:
        CheckmateError: an input has an unknown size and `sizes` do not say it.
    """
    graph = concrete.graph
    sized = {op.name: op for op in graph.get_operations()}
    batch_size = sizes if isinstance(sizes, int) else None
    drawn = [op for op in sized.values() if _draws_any_batch(op)] if batch_size else []
    if not has_unknown_sizes(concrete) and not drawn:
        return sized
    arguments = argument_placeholders(concrete)
    if isinstance(sizes, tuple):
        shapes = [_known_shape(*each) for each in zip(arguments, sizes, strict=True)]
    else:
        shapes = [_argument_shape(each, sizes) for each in arguments]
    scratch = tf.Graph()
    with scratch.as_default():
        emitter = Emitter(graph, scratch)
        for placeholder, shape in zip(arguments, shapes, strict=True):
            emitter.provide(
                placeholder, tf.raw_ops.Placeholder(dtype=placeholder.dtype, shape=shape)
            )
        for operation in topological(graph.get_operations()):
            copy = emitter.emit_anywhere(operation)
            if copy is None:
                continue
            sized[operation.name] = copy
            if copy.type == "TensorListStack":
                _let_it_stack_its_elements(copy)
            elif copy.type in LOOPS:
                _let_it_return_what_it_gets(copy)
            for element in copy.outputs if operation in drawn else ():
                _let_its_batch_be(batch_size, element)
        for placeholder in arguments:
            sized[placeholder.op.name] = emitter.provided(placeholder).op
    return sized


def _let_it_stack_its_elements(stack: Any) -> None:
    """Where the trace leaves the shape of a list's elements open, what the loop adds tells it."""
    (stacked,) = stack.outputs
    shape = shape_of_elements(stack.inputs[0])
    if stacked.shape.rank is None or shape.rank != stacked.shape.rank - 1:
        return
    known = tf.TensorShape([stacked.shape[0], *shape])
    if not stacked.shape.is_fully_defined() and stacked.shape.is_compatible_with(known):
        stacked.set_shape(known)


def _let_it_return_what_it_gets(loop: Any) -> None:
    """Where the trace leaves the shapes open that a loop returns: its iterations keep them."""
    open_ones = [
        place
        for place, each in enumerate(loop.outputs)
        if each.dtype != tf.variant and not each.shape.is_fully_defined()
    ]
    if not open_ones:
        return
    (body,) = bodies(loop)
    for place in open_ones:
        given, returned = loop.inputs[place].shape, body.outputs[place].shape
        both_known = given.is_fully_defined() and returned.is_fully_defined()
        if both_known and given.is_compatible_with(returned):
            loop.outputs[place].set_shape(given)


def check_iterators(concrete: Any, sizes: ArgumentSizes | None) -> None:
    """Refuse a step that takes batches of unknown size from an iterator, if none is said.

    Raises:
        CheckmateError: there is such an iterator, and `sizes` is None.
    """
    if sizes is not None:
        return
    drawn = next((op for op in concrete.graph.get_operations() if _draws_any_batch(op)), None)
    if drawn is not None:
        (shape, *_) = (each.shape for each in drawn.outputs if _has_any_batch(each))
        raise CheckmateError(
            "shape-unknown", f"the iterator gives elements of the shape {shape}: {_PASS_IT}"
        )


def _draws_any_batch(operation: Any) -> bool:
    """Whether `operation` is `next(iterator)` on a data set whose last batch may be smaller."""
    is_drawn = facts(operation.type).rows == "drawn"
    return is_drawn and any(_has_any_batch(each) for each in operation.outputs)


def _has_any_batch(tensor: Any) -> bool:
    return bool(tensor.shape.rank) and tensor.shape[0] is None


def _let_its_batch_be(size: int | None, tensor: Any) -> None:
    if _has_any_batch(tensor):
        tensor.set_shape([size, *tensor.shape.as_list()[1:]])


def has_unknown_sizes(concrete: Any) -> bool:
    """Whether the function takes inputs of any size."""
    return not all(each.shape.is_fully_defined() for each in argument_placeholders(concrete))


def _known_shape(placeholder: Any, shape: tuple[int, ...]) -> tf.TensorShape:
    """What the trace says of an argument, and where that is open, what its `shape` says."""
    return placeholder.shape.merge_with(
        [old or new for old, new in zip(placeholder.shape, shape, strict=True)]
        if placeholder.shape.rank is not None
        else shape
    )


def _argument_shape(placeholder: Any, batch_size: int | None) -> tf.TensorShape:
    shape = placeholder.shape
    if shape.is_fully_defined():
        return shape
    if shape.rank is None or any(size is None for size in shape.as_list()[1:]):
        raise CheckmateError(
            "shape-unknown",
            f"the input {placeholder.op.name!r} has the shape {shape}; "
            + _ENSURE.format(shape=shape),
        )
    if batch_size is None:
        raise CheckmateError(
            "shape-unknown", f"the input {placeholder.op.name!r} has the shape {shape}: {_PASS_IT}"
        )
    return tf.TensorShape([batch_size, *shape.as_list()[1:]])


def tensor_bytes(dtype: tf.DType, shape: tf.TensorShape) -> int | None:
    """Bytes of a tensor; None where its size is unknown, 0 for handles."""
    if dtype in (tf.resource, tf.variant):
        return 0
    if not shape.is_fully_defined():
        return None
    width = 16 if dtype == tf.string else dtype.size
    return int(width * math.prod(shape.as_list()))


def variable_bytes(placeholder: Any) -> int:
    """Bytes of the variable behind a captured resource handle, 0 where it is not a variable."""
    content = variable_content(placeholder)
    if content is None:
        return 0
    return tensor_bytes(tf.as_dtype(content.dtype), tf.TensorShape(content.shape)) or 0


def topological(operations: Any) -> list[Any]:
    """The operations so that each follows its inputs and control inputs.

    Creation order is not enough: building a While's gradient adds inputs, created later, to the
    earlier While.
    """
    index = {operation: number for number, operation in enumerate(operations)}
    before = [
        {index[each] for each in (*[t.op for t in op.inputs], *op.control_inputs) if each in index}
        for op in operations
    ]
    return [operations[number] for number in topological_order(before)]
