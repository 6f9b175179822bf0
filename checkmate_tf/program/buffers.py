"""Which buffers instructions allocate, take over from each other, and free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.program.in_place import InPlace
from checkmate_tf.program.instructions import Instruction, Instructions, Kernel
from checkmate_tf.program.reads import made
from checkmate_tf.trace.buffers import donor
from checkmate_tf.trace.operations import COPIES_ITS_INPUTS, ELEMENTWISE, OVERWRITES
from checkmate_tf.trace.program import Program, Tensor

_Key = tuple[int, int]
"""A value: the number of the instruction that made it, and which of its outputs it is."""


def with_buffers(
    extraction: Extraction, instructions: Instructions, changes: InPlace | None = None
) -> Instructions:
    """The same with what they allocate and free; `changes` are made in place, by default none."""
    return tuple(_Buffers(extraction, instructions, changes or InPlace()).run())


class _Buffers:
    """The buffers that are held, instruction by instruction."""

    def __init__(
        self, extraction: Extraction, instructions: Instructions, changes: InPlace
    ) -> None:
        self.program: Program = extraction.program
        self.workspaces = extraction.workspaces
        self.instructions = instructions
        self.made = [made(self.program, each) for each in instructions]
        self.dying = self._last_uses()
        self.buffer_of: dict[_Key, int] = {}
        self.buffers = 0
        self.copied = changes.copied

    def _last_uses(self) -> list[list[tuple[Tensor, _Key]]]:
        """By instruction, the values that nobody needs after it, in the order they are made in."""
        last: dict[_Key, int] = {}
        for place, each in enumerate(self.instructions):
            last.update(((place, tensor.index), place) for tensor in self.made[place])
            last.update(((by, tensor.index), place) for tensor, by in each.reads)
        dying: list[list[tuple[Tensor, _Key]]] = [[] for _ in self.instructions]
        for place, tensors in enumerate(self.made):
            for tensor in tensors:
                key = place, tensor.index
                dying[last[key]].append((tensor, key))
        return dying

    def run(self) -> Iterator[Instruction]:
        for place, each in enumerate(self.instructions):
            if each.kernel is Kernel.RETURN:
                yield replace(each, frees=tuple(self._returned(each)))
            elif each.operation is None:
                yield each
            else:
                yield self._executed(place, each, each.operation)

    def _returned(self, last: Instruction) -> Iterator[int]:
        for tensor, by in last.reads:
            if (by, tensor.index) in self.buffer_of:
                yield self.buffer_of[by, tensor.index]

    def _executed(self, place: int, each: Instruction, number: int) -> Instruction:
        buffer_of = self.buffer_of
        read = {(by, tensor.index) for tensor, by in each.reads}
        uses = tuple(sorted({buffer_of[key] for key in read if key in buffer_of}))
        dying = dict(self.dying[place])
        released = [tensor for tensor, key in dying.items() if key in buffer_of]
        taken_over = donor(self.program, number, released)
        writes: list[tuple[int, int]] = []
        takes_over = None
        if taken_over is not None:
            takes_over = buffer_of[place, 0] = buffer_of.pop(dying.pop(taken_over))
        elif not _is_known_shape(self.program.operations[number]):
            for tensor in self.made[place]:
                buffer_of[place, tensor.index] = self.buffers
                writes.append((self.buffers, tensor.bytes))
                self.buffers += 1
        assigns = None
        if (assigned := self._assigned(each, number, dying)) is not None:
            variable, tensor = assigned
            assigns = variable, buffer_of.pop(dying.pop(tensor))
        frees = tuple(buffer_of.pop(key) for key in dying.values() if key in buffer_of)
        copies, workspace = self._workspace(number)
        copies += tuple(self._copied_variables(number, writes))
        return replace(
            each,
            copies=copies,
            uses=uses,
            writes=tuple(writes),
            takes_over=takes_over,
            workspace=workspace,
            assigns=assigns,
            frees=frees,
        )

    def _workspace(self, number: int) -> tuple[tuple[int, ...], int]:
        """Bytes of the copies of inputs that it makes first, and those that it needs later."""
        left = self.workspaces[number]
        if self.program.operations[number].type not in COPIES_ITS_INPUTS:
            return (), left
        copied = []
        for tensor in self.program.reads[number]:
            if tensor.bytes <= left:
                copied.append(tensor.bytes)
                left -= tensor.bytes
        return tuple(copied), left

    def _copied_variables(self, number: int, writes: Sequence[tuple[int, int]]) -> Iterator[int]:
        """Bytes of the copies that it reads of variables that are written in place.

        An elementwise operation writes its output into one of them, if it has the same size.
        """
        operation = self.program.operations[number]
        room = [size for _, size in writes] if operation.type in ELEMENTWISE else []
        for size in self.copied.get(number, ()):
            if room == [size]:
                room = []
            else:
                yield size

    def _assigned(
        self, each: Instruction, number: int, dying: Mapping[Tensor, _Key]
    ) -> tuple[str, Tensor] | None:
        """The variable and the value that it takes over, if this is such a write."""
        operation = self.program.operations[number]
        if operation.type not in OVERWRITES or each.kernel is Kernel.WRITE_IN_PLACE:
            return None
        if not each.reads:
            return None
        tensor, by = max(each.reads, key=lambda value: value[0].bytes)
        if dying.get(tensor) != (by, tensor.index):
            return None
        return str(operation.inputs[0].name), tensor


def _is_known_shape(operation: Any) -> bool:
    """Whether TensorFlow makes a constant of the shapes that it returns."""
    is_shape = operation.type in ("Shape", "ShapeN", "Size", "Rank")
    return is_shape and all(each.shape.is_fully_defined() for each in operation.inputs)
