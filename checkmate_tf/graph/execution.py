"""Operations in turn, buffer by buffer: what is allocated, taken over and freed when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.trace.buffers import donor
from checkmate_tf.trace.operations import COPIES_ITS_INPUTS, ELEMENTWISE, OVERWRITES
from checkmate_tf.trace.program import Program, Tensor
from checkmate_tf.trace.repeatability import (
    copies_for_readers,
    updates_in_place,
    written_in_place,
)


@dataclass(frozen=True)
class Run:
    """One operation runs once.

    Attributes:
        allocated: (buffer, bytes) of its outputs that take new memory.
        copied: bytes of the copies of its inputs that it makes before it allocates its outputs.
        workspace: bytes that it needs afterwards, only while it runs.
        assigned: (variable, buffer) if the variable takes over the buffer, and frees its own.
        freed: buffers that nobody reads afterwards.
    """

    allocated: tuple[tuple[int, int], ...]
    copied: tuple[int, ...]
    workspace: int
    assigned: tuple[str, int] | None
    freed: tuple[int, ...]


@dataclass(frozen=True)
class Execution:
    """Operations that run one after the other.

    Attributes:
        runs: each of them, in order.
        returned: buffers that are left to the caller.
    """

    runs: tuple[Run, ...]
    returned: tuple[int, ...]

    @property
    def live_bytes(self) -> list[int]:
        """Bytes that are needed while each operation runs."""
        size: dict[int, int] = {}
        held, needed = 0, []
        for run in self.runs:
            size |= run.allocated
            held += sum(count for _, count in run.allocated)
            needed.append(held + run.workspace + sum(run.copied))
            # A variable that takes over a buffer frees its own.
            gone = [*run.freed, *([run.assigned[1]] if run.assigned else [])]
            held -= sum(size[buffer] for buffer in gone)
        return needed


class Executor:
    """Executes operations on paper; computations of one tensor are told apart, as its instances.

    Attributes:
        tensor: by instance.
        reads, made: instances, by place in the order.
        last_use: by instance, the place after which nobody needs it.
    """

    def __init__(self, extraction: Extraction, numbers: Sequence[int]) -> None:
        """The operations of `numbers` run in that order, each as often as it is there."""
        self.program: Program = extraction.program
        self.workspaces = extraction.workspaces
        self.numbers = numbers
        self.in_place = written_in_place(self.program)
        self.updates = updates_in_place(self.program)
        self.copied_for = copies_for_readers(self.program)
        self.tensor: list[Tensor] = []  # of an instance
        self.reads: list[list[int]] = []  # instances, per run
        self.made: list[list[int]] = []
        newest = self._number_instances(extraction.tiny)
        self.returned = {newest[tensor] for tensor in self.program.outputs}
        self.last_use = self._last_uses()
        self.dying: dict[int, list[int]] = defaultdict(list)
        for instance, place in self.last_use.items():
            if instance not in self.returned:
                self.dying[place].append(instance)

    def _number_instances(self, tiny: frozenset[Tensor]) -> dict[Tensor, int]:
        newest: dict[Tensor, int] = {}
        for number in self.numbers:
            reads = self.updates.reads(self.program, number)
            self.reads.append([newest[tensor] for tensor in reads])
            self.made.append([])
            for tensor in self.program.produced[number]:
                self.made[-1].append(len(self.tensor))
                if tensor not in tiny or tensor not in newest:
                    newest[tensor] = len(self.tensor)
                self.tensor.append(tensor)
        return newest

    def _last_uses(self) -> dict[int, int]:
        last: dict[int, int] = {}
        for place, (reads, made) in enumerate(zip(self.reads, self.made, strict=True)):
            last.update(dict.fromkeys((*made, *reads), place))
        return last

    def run(self) -> Execution:
        """Every operation, and what is left at the end."""
        buffer_of: dict[int, int] = {}
        runs = []
        for place, number in enumerate(self.numbers):
            dying = {self.tensor[i]: i for i in self.dying[place]}
            made = self.made[place]
            released = [tensor for tensor, i in dying.items() if i in buffer_of]
            taken_over = donor(self.program, number, released)
            allocated: list[tuple[int, int]] = []
            if taken_over is not None:
                buffer_of[made[0]] = buffer_of.pop(dying.pop(taken_over))
            elif not _is_known_shape(self.program.operations[number]):
                buffer_of.update((i, i) for i in made)
                allocated = [(i, self.tensor[i].bytes) for i in made]
            assigned = self._assigned(number, place, dying)
            if assigned is not None:
                variable, instance = assigned
                dying.pop(self.tensor[instance])
                assigned = variable, buffer_of.pop(instance)
            freed = tuple(buffer_of.pop(i) for i in dying.values() if i in buffer_of)
            copied, workspace = self._workspace(number)
            copied += tuple(self._copied_variables(number, allocated))
            runs.append(Run(tuple(allocated), copied, workspace, assigned, freed))
        return Execution(tuple(runs), tuple(buffer_of[i] for i in self.returned if i in buffer_of))

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

    def _copied_variables(self, number: int, allocated: Sequence[tuple[int, int]]) -> Iterator[int]:
        """Bytes of the copies that it reads of variables that are written in place.

        An elementwise operation writes its output into one of them, if it has the same size.
        """
        operation = self.program.operations[number]
        room = [size for _, size in allocated] if operation.type in ELEMENTWISE else []
        for size in self.copied_for.get(number, ()):
            if room == [size]:
                room = []
            else:
                yield size

    def _assigned(
        self, number: int, place: int, dying: dict[Tensor, int]
    ) -> tuple[str, int] | None:
        """The variable and the instance that it takes over, if this is such a write."""
        operation = self.program.operations[number]
        if operation.type not in OVERWRITES or not self.reads[place] or number in self.in_place:
            return None
        value = max(self.reads[place], key=lambda i: self.tensor[i].bytes)
        if dying.get(self.tensor[value]) != value:
            return None
        return str(operation.inputs[0].name), value


def _is_known_shape(operation: Any) -> bool:
    """Whether TensorFlow makes a constant of the shapes that it returns."""
    is_shape = operation.type in ("Shape", "ShapeN", "Size", "Rank")
    return is_shape and all(each.shape.is_fully_defined() for each in operation.inputs)
