"""Operations that a device runs as one kernel, so that only together do they have a cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profiles.operation import Operation, TensorSize


@dataclass(frozen=True, slots=True)
class Fusion(Operation):
    """A few operations as one: its type is theirs joined by "+", its attributes are with them.

    Values are numbered: first the inputs of the fusion, then the outputs of every part in order.

    Attributes:
        parts: the operations, each after those that it reads.
        wires: per part, the numbers of the values that it reads.
        results: numbers of the values that are read outside; they are the outputs.
    """

    parts: tuple[Operation, ...] = ()
    wires: tuple[tuple[int, ...], ...] = ()
    results: tuple[int, ...] = ()


def fuse(
    parts: Sequence[Operation],
    wires: Sequence[Sequence[int]],
    inputs: Sequence[TensorSize],
    results: Sequence[int],
) -> Fusion:
    """The fusion of `parts`; see `Fusion` for how values are numbered.

    Example:
        >>> x, bias = TensorSize("float32", (4, 8)), TensorSize("float32", (8,))
        >>> add, relu = Operation("BiasAdd", (x, bias), (x,)), Operation("Relu", (x,), (x,))
        >>> fuse([add, relu], wires=[[0, 1], [2]], inputs=[x, bias], results=[3]).type
        'BiasAdd+Relu'
    """
    values = [*inputs, *(size for part in parts for size in part.outputs)]
    return Fusion(
        type="+".join(part.type for part in parts),
        inputs=tuple(inputs),
        outputs=tuple(values[number] for number in results),
        constants=_known(parts, wires, len(inputs)),
        parts=tuple(parts),
        wires=tuple(map(tuple, wires)),
        results=tuple(results),
    )


def _known(
    parts: Sequence[Operation], wires: Sequence[Sequence[int]], inputs: int
) -> tuple[tuple[int, object], ...]:
    """The constants of the parts, by the number of the fusion's input."""
    found = {
        wire[place]: value
        for part, wire in zip(parts, wires, strict=True)
        for place, value in part.constants
        if wire[place] < inputs
    }
    return tuple(sorted(found.items()))
