"""Signatures of TensorFlow operations, for cost models (`profiles.Operation`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from profiles.operation import Operation, TensorSize

_MOST_CONSTANT_ELEMENTS = 64
_DEFAULTS_DROPPED = frozenset(["_class", "_output_shapes"])


def signature(operation: Any) -> Operation:
    """The signature of an operation whose shapes are known."""
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
            value = tensor.op.inputs[tensor.value_index].shape.as_list()
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
