"""Which operations oneDNN's graph pass fuses into one kernel, whatever control edges say.

The rule stands here alone. Nodes keep such operations together (`graph.contraction`), costs take
them as one (`graph.step_operations`, `profiles.fusion`), and rewritten steps put no control edge
between them (`program.order`).
"""

from __future__ import annotations

from typing import Any

_PAIRS = frozenset(
    [
        ("Conv2D", "BiasAdd"),
        ("Conv3D", "BiasAdd"),
        ("DepthwiseConv2dNative", "BiasAdd"),
        ("MatMul", "BiasAdd"),
        ("Pad", "Conv2D"),
        ("Pad", "Conv3D"),
    ]
)
"""(producer, reader), where nobody else reads what the producer makes."""

_SIBLINGS = {"Conv2DBackpropFilter": "BiasAddGrad", "Conv3DBackpropFilterV2": "BiasAddGrad"}
"""Gradients of a filter and of its bias, where both read the same gradient."""

_GRADIENT_OF_FILTER, _GRADIENT_OF_BIAS = 2, 0
"""The input that is this gradient."""


def fuses_into(producer: str, reader: str) -> bool:
    """Whether operations of these types are fused where nobody else reads the producer.

    Example:
        >>> fuses_into("Conv2D", "BiasAdd"), fuses_into("BiasAdd", "Conv2D")
        (True, False)
    """
    return (producer, reader) in _PAIRS


def sibling_of(kind: str) -> str | None:
    """The type that a filter's gradient is fused with, where both read the same gradient."""
    return _SIBLINGS.get(kind)


def may_fuse(first: str, second: str) -> bool:
    """Whether operations of these types, created in this order, may be fused.

    Example:
        >>> may_fuse("BiasAddGrad", "Conv2DBackpropFilter"), may_fuse("BiasAdd", "Conv2D")
        (True, False)
    """
    return fuses_into(first, second) or sibling_of(first) == second or sibling_of(second) == first


def shared_gradient(operation: Any) -> Any | None:
    """The tensor by which siblings find each other; None if the operation has no sibling."""
    if operation.type in _SIBLINGS:
        return operation.inputs[_GRADIENT_OF_FILTER]
    if operation.type in _SIBLINGS.values():
        return operation.inputs[_GRADIENT_OF_BIAS]
    return None
