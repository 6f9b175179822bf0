"""One operation as a cost model sees it: its type, sizes and attributes, without a graph."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

_BITS = {"bool": 8, "string": 128, "resource": 0, "variant": 0, "complex64": 64, "complex128": 128}


@dataclass(frozen=True, slots=True)
class TensorSize:
    """Type and shape of a tensor; -1 stands for a dimension that depends on data."""

    dtype: str
    shape: tuple[int, ...] = ()

    @property
    def elements(self) -> int:
        """Number of elements, unknown dimensions counted as 1."""
        return math.prod(size for size in self.shape if size >= 0)

    @property
    def bytes(self) -> int:
        """Bytes of the tensor."""
        bits = _BITS.get(self.dtype)
        if bits is None:
            bits = next(
                (int(d) for d in ("128", "64", "32", "16", "8", "4") if d in self.dtype), 32
            )
        return self.elements * bits // 8


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation's signature; operations with equal signatures cost the same.

    Attributes:
        type: TensorFlow's name of it, like "Conv2D".
        inputs, outputs: their types and shapes.
        attributes: (name, value) pairs in alphabetical order.
        constants: (input number, value) of small inputs known in advance, like axes.
    """

    type: str
    inputs: tuple[TensorSize, ...] = ()
    outputs: tuple[TensorSize, ...] = ()
    attributes: tuple[tuple[str, Any], ...] = field(default=())
    constants: tuple[tuple[int, Any], ...] = field(default=())

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute."""
        return dict(self.attributes).get(name, default)

    @property
    def bytes_moved(self) -> int:
        """Bytes of all inputs and outputs: the least that must pass through memory."""
        return sum(each.bytes for each in (*self.inputs, *self.outputs))
