"""One execution of a schedule, buffer by buffer: what is allocated, taken over and freed when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.graph.one_order import one_order
from checkmate_tf.trace.buffers import donor
from checkmate_tf.trace.operations import COPIES_ITS_INPUTS, ELEMENTWISE, OVERWRITES
from checkmate_tf.trace.program import Program, Tensor
from checkmate_tf.trace.repeatability import (
    copies_for_readers,
    has_one_order,
    updates_in_place,
    written_in_place,
)
from solvers import Schedule


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


def operations_in_order(extraction: Extraction, schedule: Schedule) -> list[int]:
    """Numbers of the operations that `schedule` runs, recomputations included.

    Those that one kernel does (`trace.repeatability`) have the number of the last of them.

    Where they have no one order, what is attached to a node that may run again waits for nothing
    but its inputs (`rewriting.replay`), so it runs as soon as they are there: a product of an
    optimizer's slot, for instance, before all else. Where such small buffers lie decides how free
    pieces lie.
    """
    if has_one_order():
        return [number for part in one_order(extraction, schedule) for number in part]
    order = _Order(extraction, schedule)
    for number in extraction.prologue:
        order.run(number)
    for node, attached in extraction.computations(schedule):
        for number in (*extraction.nodes[node], *attached):
            order.run(number)
    return order.numbers


class _Order:
    """Operations in the order in which they run; those that wait for no others come early."""

    def __init__(self, extraction: Extraction, schedule: Schedule) -> None:
        self.numbers: list[int] = []
        self._early = {
            number
            for node, attached in extraction.computations(schedule)
            if extraction.graph.nodes[node].recomputable
            for number in attached
        }
        self._missing = {number: set(extraction.program.before(number)) for number in self._early}
        self._waiting: dict[int, list[int]] = defaultdict(list)  # for an operation
        for number, before in self._missing.items():
            for each in before:
                self._waiting[each].append(number)
        for number in sorted(self._early):
            if not self._missing[number]:
                self._append(number)

    def run(self, number: int) -> None:
        """It is its turn, unless it ran early."""
        if number not in self._early:
            self._append(number)

    def _append(self, number: int) -> None:
        pending = [number]
        while pending:
            self.numbers.append(pending[0])
            for each in self._waiting.pop(pending.pop(0), ()):
                self._missing[each].discard(self.numbers[-1])
                if not self._missing[each]:
                    pending.append(each)


def execution(extraction: Extraction, schedule: Schedule) -> Execution:
    """Execute `schedule` on paper, one operation after the other."""
    return _Executor(extraction, operations_in_order(extraction, schedule)).run()


class _Executor:
    """Computations of one tensor are told apart by their number, an instance."""

    def __init__(self, extraction: Extraction, numbers: Sequence[int]) -> None:
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
        self.dying = self._last_uses()

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

    def _last_uses(self) -> dict[int, list[int]]:
        last: dict[int, int] = {}
        for place, (reads, made) in enumerate(zip(self.reads, self.made, strict=True)):
            last.update(dict.fromkeys((*made, *reads), place))
        dying: dict[int, list[int]] = defaultdict(list)
        for instance, place in last.items():
            if instance not in self.returned:
                dying[place].append(instance)
        return dying

    def run(self) -> Execution:
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
