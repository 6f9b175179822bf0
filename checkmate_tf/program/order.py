"""In which order operations run, and what each waits for.

TensorFlow's executor runs an operation as soon as it is ready, so order is what saves memory. For a
CPU one operation waits for the other here, and `side_by_side` lets go of what needs no bytes of the
one before it. On other devices groups wait for each other: those that together need too little to
matter run side by side. What oneDNN fuses whatever control edges say has no edge in it. Sources and
views are no instructions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.program.in_place import InPlace
from checkmate_tf.program.instructions import START, Instruction, Kernel
from checkmate_tf.trace.fusions import may_fuse, shared_gradient, sibling_of
from checkmate_tf.trace.program import Program, Tensor
from solvers import Schedule, simulate

GROUP_SHARE = 0.01
"""Of the schedule's activation peak: as much as operations out of order may add to it."""


def in_turn(extraction: Extraction, schedule: Schedule, changes: InPlace) -> list[Instruction]:
    """One operation after the other; what one kernel does in place of several is one."""
    listing = _Listing(extraction, changes)
    before: tuple[int, ...] = (START,)
    for node, part in _parts(extraction, schedule):
        running = [number for number in part if number not in changes.left_out]
        if running:
            before = listing.wait_for_all(listing.add_part(node, running, before))
    return [*listing.instructions, returned(before)]


def as_ready(extraction: Extraction, schedule: Schedule, changes: InPlace) -> list[Instruction]:
    """Groups of operations; each waits for the group before it. No kernel stands for several."""
    listing = _Groups(extraction, schedule, changes)
    for number in extraction.prologue:
        listing.add(number, None, listing.before(number))
    for node, attached in extraction.computations(schedule):
        for part in parts_of_node(extraction.program.operations, extraction.nodes[node]):
            listing.add_to_group(node, part)
        listing.add_attached(node, attached)
    last = returned((*listing.waits_for, *listing.group))
    return _early_first(extraction, [*listing.instructions, last])


def returned(waits_for: tuple[int, ...]) -> Instruction:
    """The last instruction: when these have run, all have."""
    return Instruction(None, waits_for=waits_for, kernel=Kernel.RETURN)


def _parts(
    extraction: Extraction, schedule: Schedule
) -> Iterator[tuple[int | None, Sequence[int]]]:
    """Operations in order, with their node; those of one part may be fused."""
    for number in extraction.prologue:
        yield None, [number]
    for node, attached in extraction.computations(schedule):
        for part in parts_of_node(extraction.program.operations, extraction.nodes[node]):
            yield node, part
        for number in attached:
            yield None, [number]


def parts_of_node(operations: Sequence[Any], members: Sequence[int]) -> list[list[int]]:
    """Split the operations of a node where one must wait for the other; fused pairs stay whole."""
    cut_before = set(range(1, len(members)))
    for first, one in enumerate(members):
        for second in range(first + 1, len(members)):
            if may_fuse(operations[one].type, operations[members[second]].type):
                cut_before -= set(range(first + 1, second + 1))
    bounds = [0, *sorted(cut_before), len(members)]
    return [list(members[start:end]) for start, end in pairwise(bounds)]


class _Listing:
    """Instructions so far."""

    def __init__(self, extraction: Extraction, changes: InPlace) -> None:
        self.extraction = extraction
        self.program: Program = extraction.program
        self.changes = changes
        self.instructions: list[Instruction] = []
        self.newest: dict[int, int] = {}  # by operation, its last instruction

    def add(self, number: int, node: int | None, waits_for: tuple[int, ...], **more: Any) -> int:
        """One more instruction; returns its number."""
        self.instructions.append(
            Instruction(
                number,
                node,
                recomputed=number in self.newest,
                waits_for=waits_for,
                **kernel_of(self.program, number, self.changes),
                **more,
            )
        )
        self.newest[number] = len(self.instructions) - 1
        return self.newest[number]

    def add_part(
        self, node: int | None, part: Sequence[int], waits_for: tuple[int, ...]
    ) -> list[int]:
        """What may be fused; what reads nothing of it waits."""
        inside = set(part)
        shared = self._renamed(part)
        first = len(self.instructions)
        return [
            self.add(
                number,
                node,
                self.waits(number, inside, waits_for),
                renamed=_renaming(self.program.operations[number], shared, first),
            )
            for number in part
        ]

    def waits(
        self, number: int, inside: Collection[int], waits_for: tuple[int, ...]
    ) -> tuple[int, ...]:
        """What an operation waits for; with what is `inside` its part it may be fused."""
        reads_inside = any(t.producer in inside for t in self.program.reads[number])
        return () if reads_inside else waits_for

    def wait_for_all(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """What to wait for instead of these instructions."""
        if len(numbers) < 2:
            return tuple(numbers)
        self.instructions.append(Instruction(None, waits_for=tuple(numbers), kernel=Kernel.BARRIER))
        return (len(self.instructions) - 1,)

    def _renamed(self, part: Sequence[int]) -> Any | None:
        """The tensor by which oneDNN finds siblings, where they are computed again.

        By the same name it would fuse parts of two computations, which wait for each other.
        """
        operations = self.program.operations
        again = (n for n in part if sibling_of(operations[n].type) and n in self.newest)
        return next((shared_gradient(operations[number]) for number in again), None)


def _renaming(operation: Any, shared: Any | None, first: int) -> tuple[Any, int] | None:
    reads = shared is not None and any(each is shared for each in operation.inputs)
    return (shared, first) if reads else None


def kernel_of(program: Program, number: int, changes: InPlace) -> dict[str, Any]:
    """How the executor runs an operation, as arguments of `Instruction`."""
    operation = program.operations[number]
    if number in changes.kernels:
        return {"kernel": Kernel.MOMENTUM, "update": changes.kernels[number]}
    if operation.type == "AddN" and len(operation.inputs) > 2:
        return {"kernel": Kernel.SUM}
    return {"kernel": Kernel.WRITE_IN_PLACE} if number in changes.writes else {}


class _Groups(_Listing):
    """Instructions so far, and the group that is being filled."""

    def __init__(self, extraction: Extraction, schedule: Schedule, changes: InPlace) -> None:
        super().__init__(extraction, changes)
        peak = simulate(extraction.graph, schedule).peak - extraction.graph.fixed_bytes
        self.group_bytes = GROUP_SHARE * peak
        self.waits_for: tuple[int, ...] = (START,)  # the group before
        self.group: list[int] = []
        self.small_bytes = 0  # needed in the group by all but its first operation

    def before(self, number: int) -> tuple[int, ...]:
        """The newest instructions that an operation must run after, whatever it reads."""
        return newest_before(self.program, number, self.newest)

    def waits(
        self, number: int, inside: Collection[int], waits_for: tuple[int, ...]
    ) -> tuple[int, ...]:
        """See `_Listing`; what is attached to a node belongs to no group."""
        return (*super().waits(number, inside, waits_for), *self.before(number))

    def add_to_group(self, node: int | None, part: Sequence[int]) -> None:
        for member in part:
            self.small_bytes += sum(t.bytes for t in self.program.produced[member])
            self.small_bytes += self.extraction.workspaces[member]
        if self.small_bytes > self.group_bytes or not self.group:
            self._close_group()
        self.group += self.add_part(node, part, self.waits_for)

    def _close_group(self) -> None:
        """Let all that follows wait for all that is there."""
        self.waits_for = self.wait_for_all(self.group) or self.waits_for
        self.group = []
        self.small_bytes = 0

    def add_attached(self, node: int, attached: Sequence[int]) -> None:
        """What runs once, beside the schedule, but before a large tensor that it reads may go."""
        if not self.extraction.graph.nodes[node].recomputable:
            # The rest of a variable's update; what follows may count on its buffers.
            for number in attached:
                self.add_to_group(None, [number])
            return
        for number in attached:
            made = self.add(number, None, self.before(number))
            if any(is_large(self.extraction, tensor) for tensor in self.program.reads[number]):
                self.group.append(made)


def newest_before(program: Program, number: int, newest: Mapping[int, int]) -> tuple[int, ...]:
    """Of the operations that one must run after, the instructions that are the `newest`."""
    return tuple(newest[each] for each in sorted(program.order[number]) if each in newest)


def is_large(extraction: Extraction, tensor: Tensor) -> bool:
    """Whether a tensor has a place in the schedule."""
    return tensor not in extraction.tiny


def _early_first(extraction: Extraction, instructions: Sequence[Instruction]) -> list[Instruction]:
    """The same in the order in which they run: what waits for no group comes early.

    What is attached to a node that may run again waits for nothing but its inputs, so it runs as
    soon as they are there: a product of an optimizer's slot, for instance, before all else. Where
    such small buffers lie decides how free pieces lie.
    """
    nodes = extraction.graph.nodes
    attached = {
        number
        for node, members in enumerate(extraction.attached)
        if nodes[node].recomputable
        for number in members
    }
    missing = {number: set(extraction.program.before(number)) for number in attached}
    waiting: dict[int, list[int]] = defaultdict(list)  # for an operation
    for number, before in missing.items():
        for each in before:
            waiting[each].append(number)
    place = {each.operation: n for n, each in enumerate(instructions) if each.operation in attached}
    order: list[int] = []

    def run(first: int) -> None:
        pending = [first]
        while pending:
            order.append(pending.pop(0))
            operation = instructions[order[-1]].operation
            for each in waiting.pop(operation, ()) if operation is not None else ():
                missing[each].discard(operation)
                if not missing[each]:
                    pending.append(place[each])

    for each in [number for number in sorted(attached) if not missing[number]]:
        run(place[each])
    for number, instruction in enumerate(instructions):
        if instruction.operation not in attached:
            run(number)
    new = {START: START} | {old: number for number, old in enumerate(order)}
    return [
        replace(
            instructions[old],
            waits_for=tuple(new[each] for each in instructions[old].waits_for),
            renamed=_moved(instructions[old].renamed, new),
        )
        for old in order
    ]


def _moved(renamed: tuple[Any, int] | None, new: dict[int, int]) -> tuple[Any, int] | None:
    return None if renamed is None else (renamed[0], new[renamed[1]])
