"""The one order in which a CPU runs a schedule, and what runs beside others in it.

A product keeps several cores busy only in part. So it runs beside what follows and does not need
it, at most up to the end of the next product, and only as far as both together hold no more than
the schedule does elsewhere. What needs it waits until then. The gradient of a weight is needed by
no other product and has the most time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any
from weakref import WeakKeyDictionary

from checkmate_tf.graph.execution import Executor
from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.trace.fusions import may_fuse
from checkmate_tf.trace.program import Program
from checkmate_tf.trace.repeatability import updates_in_place
from checkmate_tf.trace.signatures import signature
from profiles.roofline import PRODUCTS, floating_point_operations
from solvers import Schedule

LARGE_PRODUCT = 2e6
"""Floating-point operations of a product that is worth a second thread: some 50 µs of a core."""

MOST_TOUCHED = 16 << 20
"""Bytes that a product reads, makes and works with, at most, if it is to run beside others. Larger
ones keep several cores busy, and together they would push each other out of the cache."""

MOST_LATER = 12
"""Parts that may be put off, because they need a product that runs beside others. If no other
product needs that one, any number may: nothing else waits for them."""

MOST_BESIDE = 48
"""Parts that run beside a product, at most: what it reads is held as long."""


@dataclass(frozen=True)
class OneOrder:
    """Operations in the order in which they begin.

    Attributes:
        parts: numbers of operations; those of one part may be fused, and wait for the same.
        beside: by the place of a part that runs beside those after it, the place of the last one.
    """

    parts: tuple[tuple[int, ...], ...]
    beside: Mapping[int, int]

    @property
    def numbers(self) -> list[int]:
        """The operations, one after the other."""
        return [number for part in self.parts for number in part]


def one_order(extraction: Extraction, schedule: Schedule) -> OneOrder:
    """The order in which a CPU runs `schedule`.

    Several operations that one kernel replaces (`trace.repeatability`) are one, by the number of
    the last of them.
    """
    parts = _parts(extraction, schedule)
    facts = _facts(extraction.program)
    room = _Room(extraction, parts)
    ordered: list[tuple[int, ...]] = []
    beside: dict[int, int] = {}
    place = 0
    while place < len(parts):
        ordered.append(parts[place])
        if facts.has_product(parts[place]):
            others, later = _until_next_product(parts, place, facts, room)
            if others:
                beside[len(ordered) - 1] = len(ordered) + len(others) - 1
            ordered += [*others, *later]
            place += len(others) + len(later)
        place += 1
    return OneOrder(tuple(ordered), beside)


def _parts(extraction: Extraction, schedule: Schedule) -> list[tuple[int, ...]]:
    operations = extraction.program.operations
    left_out = updates_in_place(extraction.program).left_out
    parts = [[number] for number in extraction.prologue]
    for node, attached in extraction.computations(schedule):
        parts += parts_of_node(operations, extraction.nodes[node])
        parts += [[number] for number in attached]
    kept = [tuple(number for number in part if number not in left_out) for part in parts]
    return [part for part in kept if part]


def parts_of_node(operations: Sequence[Any], members: Sequence[int]) -> list[list[int]]:
    """Split the operations of a node where one must wait for the other; fused pairs stay whole."""
    cut_before = set(range(1, len(members)))
    for first, one in enumerate(members):
        for second in range(first + 1, len(members)):
            if may_fuse(operations[one].type, operations[members[second]].type):
                cut_before -= set(range(first + 1, second + 1))
    bounds = [0, *sorted(cut_before), len(members)]
    return [list(members[start:end]) for start, end in pairwise(bounds)]


def _until_next_product(
    parts: Sequence[tuple[int, ...]], place: int, facts: _Facts, room: _Room
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """What may run beside `parts[place]`, and what is put off until that has ended."""
    others: list[tuple[int, ...]] = []
    later: list[tuple[int, ...]] = []
    waiting = set(parts[place])  # it, and all that has to wait for it
    read_later: set[int] = set()
    for last in range(place + 1, min(place + 1 + MOST_BESIDE, len(parts))):
        part = parts[last]
        if any(number in waiting or facts.before[number] & waiting for number in part):
            if len(later) == MOST_LATER and not facts.no_product_needs(parts[place]):
                break
            later.append(part)
            waiting.update(part)
            read_later.update(each for number in part for each in facts.before[number])
            continue
        if not read_later.isdisjoint(part):
            break  # it would compute anew what a part that is put off has yet to read
        if not room.runs_beside(place, last):
            break
        others.append(part)
        if facts.has_product(part):
            break
    return others, later


@dataclass(frozen=True)
class _Facts:
    """What of a program decides what may run beside what.

    Attributes:
        before: per operation, those that it has to run after.
        products: the large ones.
        needed: those that a large product needs, directly or not.
    """

    before: Sequence[frozenset[int]]
    products: frozenset[int]
    needed: frozenset[int]

    def has_product(self, part: Sequence[int]) -> bool:
        """Whether a large product is among these operations."""
        return not self.products.isdisjoint(part)

    def no_product_needs(self, part: Sequence[int]) -> bool:
        """Whether no large product needs what these operations make."""
        return self.needed.isdisjoint(part)


_FACTS: WeakKeyDictionary[Program, _Facts] = WeakKeyDictionary()


def _facts(program: Program) -> _Facts:
    if program not in _FACTS:
        products = frozenset(
            number
            for number, operation in enumerate(program.operations)
            if operation.type in PRODUCTS
            and floating_point_operations(signature(program.sized[operation.name])) > LARGE_PRODUCT
        )
        _FACTS[program] = _Facts(_before(program), products, _needed_by(program, products))
    return _FACTS[program]


def _before(program: Program) -> list[frozenset[int]]:
    """Per operation, those before it; a kernel that replaces several has the place of them all."""
    stands_for = {
        each: kernel
        for kernel, update in updates_in_place(program).kernels.items()
        for each in update.replaced
    }
    before: list[set[int]] = [set() for _ in program.operations]
    for number in range(len(program.operations)):
        runs = stands_for.get(number, number)
        before[runs] |= {stands_for.get(each, each) for each in program.before(number)} - {runs}
    return [frozenset(each) for each in before]


def _needed_by(program: Program, products: frozenset[int]) -> frozenset[int]:
    needed: set[int] = set()
    for number in reversed(range(len(program.operations))):  # in a topological order
        if number in products or number in needed:
            needed |= {tensor.producer for tensor in program.reads[number]}
    return frozenset(needed)


class _Room:
    """What is held while each part runs, all in turn, and the most of it."""

    def __init__(self, extraction: Extraction, parts: Sequence[tuple[int, ...]]) -> None:
        self._workspaces = extraction.workspaces
        self._parts = parts
        self._first = list(accumulate(map(len, parts), initial=0))  # places of their operations
        self._executor = Executor(extraction, [number for part in parts for number in part])
        live_bytes = self._executor.run().live_bytes
        self._held = [max(live_bytes[one:other]) for one, other in pairwise(self._first)]
        self._most = max(self._held, default=0)

    def runs_beside(self, place: int, last: int) -> bool:
        """Whether the part at `place` may run until the one at `last` has run.

        What it needs while it runs is held as long. So is what it reads, where nobody else needs
        it any more: who reads that last can't write into its buffer.
        """
        executor, end = self._executor, self._first[last + 1]
        instances = {
            instance
            for each in range(self._first[place], self._first[place + 1])
            for instance in (*executor.reads[each], *executor.made[each])
        }
        workspace = sum(self._workspaces[number] for number in self._parts[place])
        bytes_of = {instance: executor.tensor[instance].bytes for instance in instances}
        more = sum(bytes_of[each] for each in instances if executor.last_use[each] < end)
        touched = sum(bytes_of.values()) + workspace
        return touched <= MOST_TOUCHED and self._held[last] + more + workspace <= self._most
