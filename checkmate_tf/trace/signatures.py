"""Signatures of TensorFlow operations, for cost models (`profiles.Operation`)."""

from __future__ import annotations

import functools
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import tensorflow as tf

from checkmate_tf.trace.bodies import LOOPS, RUN_FUNCTIONS, Body, bodies, is_compiled
from checkmate_tf.trace.compiled import definition_of
from checkmate_tf.trace.iterations import most_iterations
from checkmate_tf.trace.program import resolve_body
from profiles.nested import Nested
from profiles.operation import Operation, TensorSize
from profiles.roofline import floating_point_operations
from profiles.tensorflow_internals import variable_content

_MOST_CONSTANT_ELEMENTS = 64
_DEFAULTS_DROPPED = frozenset(["_class", "_output_shapes"])
_KNOWN: WeakKeyDictionary[Any, Operation] = WeakKeyDictionary()
"""Signatures are asked for three times while a step is planned, and take a while to read."""


def signature(operation: Any) -> Operation:
    """The signature of an operation whose shapes are known.

    That of a loop, a branch or a compiled call holds those of the operations inside.
    """
    if operation not in _KNOWN:
        nested = operation.type in RUN_FUNCTIONS
        made = _nested(operation) if nested else _plain_signature(operation)
        _KNOWN[operation] = _shared(made)
    return _KNOWN[operation]


@functools.lru_cache(maxsize=8192)
def _shared(made: Operation) -> Operation:
    """One object for equal signatures: TensorFlow keeps graphs for good, and with them theirs."""
    return made


def _plain_signature(operation: Any) -> Operation:
    attributes = sorted(
        (name, _plain(operation.get_attr(name)))
        for name in operation.node_def.attr
        if name not in _DEFAULTS_DROPPED and operation.type != "Const"
    )
    return Operation(
        type=operation.type,
        inputs=tuple(_size(each) for each in operation.inputs),
        outputs=tuple(_size(each) for each in operation.outputs),
        attributes=tuple(attributes),
        constants=tuple(_constants(operation)),
    )


def _nested(operation: Any) -> Nested:
    inside = [_parts(body) for body in bodies(operation)]
    repeats = most_iterations(operation) if operation.type in LOOPS else 1
    return Nested(
        type=operation.type,
        inputs=tuple(map(_size, operation.inputs)),
        outputs=tuple(map(_size, operation.outputs)),
        constants=tuple(_constants(operation)),
        parts=max(inside, key=lambda parts: sum(map(floating_point_operations, parts)), default=()),
        repeats=1 if repeats is None else repeats,
        definition=definition_of(operation) if is_compiled(operation) else b"",
        contents=tuple(_contents(operation)),
    )


def _parts(body: Body) -> tuple[Operation, ...]:
    """What a body does; nothing where the sizes that it is given are not known."""
    if not body.is_sized:
        return ()
    program = resolve_body(body)
    return tuple(signature(program.sized[each.name]) for each in program.operations)


def _contents(operation: Any) -> list[tuple[int, TensorSize]]:
    """Types and shapes of the variables whose handles are inputs."""
    found = []
    for number, tensor in enumerate(operation.inputs):
        content = variable_content(tensor) if tensor.dtype == tf.resource else None
        if content is not None:
            shape = tf.TensorShape(content.shape)
            if shape.is_fully_defined():
                dtype = tf.as_dtype(content.dtype).name
                found.append((number, TensorSize(dtype, tuple(shape.as_list()))))
    return found


def _size(tensor: Any) -> TensorSize:
    shape = tensor.shape
    sizes = (
        () if shape.rank is None else tuple(-1 if d is None else int(d) for d in shape.as_list())
    )
    return TensorSize(tensor.dtype.name, sizes)


def _constants(operation: Any) -> list[tuple[int, Any]]:
    """Values of small integer inputs: axes, paddings, target shapes."""
    found = []
    for number, tensor in enumerate(operation.inputs):
        if (
            not tensor.dtype.is_integer
            or (tensor.shape.num_elements() or 0) > _MOST_CONSTANT_ELEMENTS
        ):
            continue
        if tensor.op.type == "ShapeN":  # which get_static_value does not know
            shape = tensor.op.inputs[tensor.value_index].shape
            value = None if shape.rank is None else shape.as_list()
        else:
            value = tf.get_static_value(tensor)
        if value is not None:
            found.append((number, _plain(np.asarray(value).tolist())))
    return found


def _plain(value: Any) -> Any:
    """A hashable value that JSON can hold."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, list | tuple):
        return tuple(_plain(each) for each in value)
    if isinstance(value, tf.DType):
        return value.name
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
