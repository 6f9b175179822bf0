"""Kinds of kernels: what, beside bytes and arithmetic, decides how long an operation takes."""

from __future__ import annotations

from profiles.operation import Operation
from profiles.operation_facts import facts

BROADCASTING = "elementwise, broadcasting"
COLUMNS = "sums of columns"

_REDUCTIONS = frozenset(["Sum", "Mean", "Prod", "Max", "Min"])


def kind_of(operation: Operation) -> str:
    """The kind of its kernel: its type, or what kernels of several types have in common.

    Elementwise operations are slow where one input is repeated along an axis, whatever they
    compute, and sums are where they run across rows: over the first axis, not the last.

    Example:
        >>> from profiles.operation import TensorSize
        >>> images = TensorSize("float32", (8, 28, 28, 64))
        >>> channels, axes = TensorSize("float32", (64,)), TensorSize("int32", (3,))
        >>> kind_of(Operation("Mul", (images, images), (images,)))
        'Mul'
        >>> kind_of(Operation("Mul", (images, channels), (images,)))
        'elementwise, broadcasting'
        >>> kind_of(Operation("Mean", (images, axes), (channels,), constants=((1, (0, 1, 2)),)))
        'sums of columns'
    """
    if facts(operation.type).buffer == "in place" and _broadcasts(operation):
        return BROADCASTING
    if operation.type in _REDUCTIONS and _is_across_rows(operation):
        return COLUMNS
    return operation.type


def runs_no_kernel(operation: Operation) -> bool:
    """Whether it takes as long as its dispatch: it looks at shapes, or passes a buffer on.

    Example:
        >>> [runs_no_kernel(Operation(each)) for each in ("Shape", "Reshape", "Relu")]
        [True, True, False]
    """
    row = facts(operation.type)
    return (
        row.arithmetic == "shapes"
        or row.buffer in ("view", "given")
        or row.variable == "overwrites"
    )


def _broadcasts(operation: Operation) -> bool:
    """Whether inputs differ in shape, numbers aside."""
    return len({each.shape for each in operation.inputs if each.elements > 1}) > 1


def _is_across_rows(operation: Operation) -> bool:
    axes = dict(operation.constants).get(1)
    rank = len(operation.inputs[0].shape)
    if axes is None or rank < 2:
        return False
    summed = {axis % rank for axis in (axes if isinstance(axes, tuple) else (axes,))}
    return 0 in summed and rank - 1 not in summed
