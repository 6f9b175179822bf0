"""Which operations form one node: fused pairs, and runs that are never worth cutting.

An operation joins its only reader where keeping its output could never beat keeping the
reader's: the reader writes into the same buffer, or leaves nothing behind. What remains has a
few hundred nodes where the step has thousands of operations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from checkmate_tf.trace.buffers import leanest_order, peak_of_run
from checkmate_tf.trace.fusions import fuses_into, sibling_of
from checkmate_tf.trace.operations import is_stateful
from checkmate_tf.trace.program import Program, Tensor
from solvers.graph.topological import inverse, topological_order

_NOTHING_BESIDE = 16
"""A tensor so many times smaller than another plays no part in a decision about that one."""

_MOST_JOINED = 40
"""Operations in one node; more would only make planning slow."""


@dataclass
class _Group:
    """Operations that run together, while groups are being formed.

    Attributes:
        outputs, peak: what `_Groups` found of them as they are now; None before it was asked.
    """

    members: list[int]
    reads: set[Tensor] = field(default_factory=set)
    outputs: list[Tensor] | None = None
    peak: int | None = None


class _Groups:
    """A partition of the operations that only ever gets coarser, and never cyclic."""

    def __init__(self, program: Program) -> None:
        self.program = program
        count = len(program.operations)
        self.of = list(range(count))
        self.groups = {i: _Group([i], set(program.reads[i])) for i in range(count)}
        self.successors: list[set[int]] = [set() for _ in range(count)]
        self.readers: dict[Tensor, list[int]] = defaultdict(list)
        for number in range(count):
            for tensor in program.reads[number]:
                self.readers[tensor].append(number)
                self.successors[tensor.producer].add(number)
            for other in program.order[number]:
                self.successors[other].add(number)

    def members(self, group: int) -> list[int]:
        return self.groups[group].members

    def successor_groups(self, group: int) -> set[int]:
        found = {self.of[s] for m in self.members(group) for s in self.successors[m]}
        return found - {group}

    def reader_groups(self, group: int) -> set[int]:
        """Groups that read what this one makes."""
        return {self.of[r] for t in self.outputs(group) for r in self.readers[t]} - {group}

    def leads_to(self, starts: set[int], end: int) -> bool:
        """Whether a path leads from one of the groups `starts` to the group `end`."""
        pending, seen = list(starts), set(starts)
        while pending:
            group = pending.pop()
            if group == end:
                return True
            new = self.successor_groups(group) - seen
            seen |= new
            pending.extend(new)
        return False

    def can_merge(self, first: int, second: int) -> bool:
        """Whether `first` running as part of `second` leaves no cycle."""
        return not self.leads_to(self.successor_groups(first) - {second}, second)

    def outputs(self, group: int) -> list[Tensor]:
        """Tensors made in the group and read outside it; only a merge of its own changes them."""
        known = self.groups[group]
        if known.outputs is None:
            known.outputs = [
                tensor
                for member in known.members
                for tensor in self.program.produced[member]
                if tensor in self.program.outputs
                or any(self.of[reader] != group for reader in self.readers[tensor])
            ]
        return known.outputs

    def peak(self, group: int) -> int:
        """Bytes held at most while the group runs, its inputs not counted."""
        known = self.groups[group]
        if known.peak is None:
            known.peak = _peak(self.program, known.members, self.outputs(group))
        return known.peak

    def merge(self, first: int, second: int) -> None:
        """Let `first` run as part of `second`."""
        target, source = self.groups[second], self.groups.pop(first)
        for member in source.members:
            self.of[member] = second
        target.members = sorted(source.members + target.members)
        target.outputs = target.peak = None
        target.reads = {t for t in target.reads | source.reads if self.of[t.producer] != second}


def group_operations(program: Program) -> list[list[int]]:
    """Partition the operations of `program`; each part in order, the parts in an order that works.

    The order follows creation, except that a part runs as soon as its first operation would:
    a variable's update as soon as its gradient exists.
    """
    groups = _Groups(program)
    _join_fused(groups)
    for group in sorted(groups.groups, key=lambda g: -groups.members(g)[-1]):
        while group in groups.groups and (reader := _worth_joining(groups, group)) is not None:
            groups.merge(group, reader)
    return [
        leanest_order(program, members, groups.outputs(groups.of[members[0]]))
        for members in _in_order(groups)
    ]


def _join_fused(groups: _Groups) -> None:
    """oneDNN fuses these pairs whatever control edges say, so they stay together."""
    program = groups.program
    for number, operation in enumerate(program.operations):
        for tensor in program.reads[number]:
            first, second = groups.of[tensor.producer], groups.of[number]
            fused = fuses_into(program.operations[tensor.producer].type, operation.type)
            if fused and groups.reader_groups(first) == {second}:
                _merge_if_possible(groups, first, second)
        sibling = sibling_of(operation.type)
        for tensor in program.reads[number] if sibling else ():
            for other in groups.readers[tensor]:
                if program.operations[other].type == sibling:
                    _merge_if_possible(groups, groups.of[other], groups.of[number])


def _merge_if_possible(groups: _Groups, first: int, second: int) -> None:
    if first != second and groups.can_merge(first, second) and groups.can_merge(second, first):
        groups.merge(first, second)


def _worth_joining(groups: _Groups, group: int) -> int | None:
    """The group that `group` should run as part of, or None."""
    reader = _only_reader(groups, group)
    if reader is None:
        return None
    size = _total(groups.outputs(group))
    left_behind = _total(groups.outputs(reader))
    would_run_too_often = _stateful(groups, group) and not _stateful(groups, reader)
    if left_behind > size or would_run_too_often:
        return None
    pair = _Pair(groups, group, reader, size)
    if pair.reads_no_more() and groups.can_merge(group, reader) and pair.holds_no_more():
        return reader
    return None


def _only_reader(groups: _Groups, group: int) -> int | None:
    """The one group that reads what `group` makes, if there is one and nothing is returned."""
    readers = groups.reader_groups(group)
    if len(readers) != 1 or any(t in groups.program.outputs for t in groups.outputs(group)):
        return None
    return next(iter(readers))


class _Pair:
    """A group and its only reader, compared as two nodes and as one.

    Attributes:
        size: bytes that the group makes for the reader.
        own: what the group reads, but for tensors that are nothing beside `size`.
        others: the same of what the reader reads from elsewhere.
    """

    def __init__(self, groups: _Groups, group: int, reader: int, size: int) -> None:
        self.groups = groups
        self.group = group
        self.reader = reader
        self.size = size
        self.own = {t for t in groups.groups[group].reads if self._counts(t)}
        self.others = {
            t
            for t in groups.groups[reader].reads
            if groups.of[t.producer] != group and self._counts(t)
        }

    def _counts(self, tensor: Tensor) -> bool:
        return tensor.bytes * _NOTHING_BESIDE > self.size

    def reads_no_more(self) -> bool:
        """Whether both read the same, or what the reader needs is there before the group runs."""
        nested = self.own <= self.others or self.others <= self.own
        last = self.groups.members(self.group)[-1]
        return nested or all(tensor.producer < last for tensor in self.others)

    def holds_no_more(self) -> bool:
        """Whether the two hold no more memory as one than one after the other."""
        inputs = _total(self.own | self.others)
        groups = self.groups
        members = sorted(groups.members(self.group) + groups.members(self.reader))
        together = inputs + _peak(groups.program, members, groups.outputs(self.reader))
        first = inputs + groups.peak(self.group)
        second = _total(self.others) + self.size + groups.peak(self.reader)
        return together <= max(first, second) + self.size // _NOTHING_BESIDE


def _peak(program: Program, members: list[int], kept: list[Tensor]) -> int:
    """Bytes held at most while `members` run in their leanest order, inputs not counted."""
    if len(members) > _MOST_JOINED:
        return sum(t.bytes for m in members for t in program.produced[m])
    return peak_of_run(program, leanest_order(program, members, kept), kept, lambda number: 0)


def _total(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.bytes for tensor in tensors)


def _stateful(groups: _Groups, group: int) -> bool:
    return any(is_stateful(groups.program.operations[m]) for m in groups.members(group))


def _in_order(groups: _Groups) -> list[list[int]]:
    """The groups in a topological order, each as early as its first member allows."""
    in_order = sorted(groups.groups, key=lambda group: groups.members(group)[0])
    rank = {group: number for number, group in enumerate(in_order)}
    after = [{rank[each] for each in groups.successor_groups(group)} for group in in_order]
    ordered = topological_order(inverse(after))
    assert len(ordered) == len(in_order), "groups form a cycle"
    return [groups.members(in_order[number]) for number in ordered]
