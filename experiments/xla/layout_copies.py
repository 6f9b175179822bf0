"""Copies of kernels in another order of dimensions, which XLA makes for a GPU's convolutions.

TensorFlow keeps kernels as height, width, input, output. In float32 cuDNN reads them as output,
input, height, width. A step with many weights and small images may hold more of such copies than
of activations.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any

_BYTES = {10: 2, 16: 2, 11: 4, 12: 8}
"""By number of a type in XLA: float16, bfloat16, float32, float64."""

_SAME_BUFFER = frozenset(["bitcast", "get-tuple-element"])

_FEW = 16
"""Elements of what a copy may read beside a kernel: the zero of a tie."""


@dataclass(frozen=True)
class LayoutCopy:
    """A copy of a parameter.

    Attributes:
        size: bytes.
        made, last_read: numbers of instructions in the order in which they run.
    """

    size: int
    made: int
    last_read: int


def layout_copies(module: Any) -> list[LayoutCopy]:
    """The copies that a compiled HloModuleProto makes of its parameters, in the order of `made`.

    Only those that an instruction makes by itself; those that one makes beside other results are
    not counted.
    """
    entry = module.entry_computation_id
    (computation,) = (each for each in module.computations if each.id == entry)
    known = {each.id: each for each in computation.instructions}
    order = [known[number] for number in module.schedule.sequences[entry].instruction_ids]
    buffers: dict[int, int] = {}  # whose buffer an instruction's result lies in
    last_read: dict[int, int] = {}
    kernels: dict[int, tuple[int, ...]] = {}  # what is a kernel, or made of one: its dimensions
    copies: dict[int, int] = {}
    for place, each in enumerate(order):
        read = [buffers[number] for number in each.operand_ids]
        same = each.opcode in _SAME_BUFFER
        buffers[each.id] = read[0] if same else each.id
        if not same:
            last_read.update(dict.fromkeys(read, place))
        dimensions = tuple(each.shape.dimensions)
        if each.opcode == "parameter" and len(dimensions) > 3:
            kernels[each.id] = dimensions
        elif each.opcode in ("fusion", "copy", "transpose") and each.shape.element_type in _BYTES:
            large = [one for one in read if _elements(known[one]) > _FEW]
            if len(large) == 1 and large[0] in kernels:
                kernel = kernels[large[0]]
                if prod(dimensions) == prod(kernel) and dimensions != kernel:
                    kernels[each.id] = kernel
                    copies[each.id] = place
    return [
        LayoutCopy(_size(known[number]), place, last_read.get(number, place))
        for number, place in copies.items()
    ]


def most_at_once(copies: list[LayoutCopy]) -> int:
    """The most bytes of copies that have been made and will be read again."""
    changes = [(each.made, each.size) for each in copies]
    changes += [(each.last_read + 1, -each.size) for each in copies]
    return max(accumulate((size for _, size in sorted(changes)), initial=0))


def _elements(instruction: Any) -> int:
    shape = instruction.shape
    return max((prod(each.dimensions) for each in (shape, *shape.tuple_shapes)), default=0)


def _size(instruction: Any) -> int:
    shape = instruction.shape
    return int(_BYTES[shape.element_type] * prod(shape.dimensions))
