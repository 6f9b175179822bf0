"""Which operations may run side by side: each waits for what frees the bytes that it allocates.

A step whose operations run one after the other holds the least, but leaves cores idle. Here bytes
are handed on: an instruction takes those that the longest ago were freed, and waits for all that
used them. So never more bytes are live than in turn, whatever runs first, and where memory is not
short an operation starts as soon as its inputs are there.

Only what an instruction waits for counts, not what it reads: TensorFlow's graph rewrites let an
operation read another value (a constant is pushed down to where it is multiplied), but keep its
control edges.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from checkmate_tf.devices.allocator import aligned
from checkmate_tf.program.in_place import InPlace
from checkmate_tf.program.instructions import START, Instruction, Instructions, Kernel
from checkmate_tf.trace.program import Program

_AHEAD = 4
"""Parts by which what is computed again may run ahead of its turn."""


def side_by_side(program: Program, instructions: Instructions, changes: InPlace) -> Instructions:
    """The same, where each waits for what frees its bytes.

    Args:
        program: the traced step.
        instructions: of it, each of which waits for the one before it, with their buffers.
        changes: that are made in place.
    """
    return tuple(_Handover(program, instructions, changes).run())


def most_live_bytes(instructions: Instructions) -> int:
    """Bytes of buffers, copies and workspaces that are live at most, if all run in turn.

    What may be fused allocates as one.
    """
    size = sizes_of_buffers(instructions)
    live = most = 0
    for part in _parts(instructions):
        here = [instructions[number] for number in part]
        passing = sum(map(_passing, here))
        live += sum(size[buffer] for each in here for buffer, _ in each.writes) + passing
        most = max(most, live)
        live -= sum(size[buffer] for each in here for buffer in _given_up(each)) + passing
    return most


def sizes_of_buffers(instructions: Instructions) -> dict[int, int]:
    """Bytes of each buffer that is written."""
    return {buffer: aligned(size) for each in instructions for buffer, size in each.writes}


def _passing(each: Instruction) -> int:
    """Bytes that it needs only while it runs."""
    return sum(map(aligned, filter(None, (*each.copies, each.workspace))))


def _given_up(each: Instruction) -> tuple[int, ...]:
    """Buffers whose bytes are free after it; for one that it assigns, a variable frees its own."""
    if each.kernel is Kernel.RETURN:
        return ()
    return each.frees if each.assigns is None else (*each.frees, each.assigns[1])


class _Handover:
    """Bytes on their way from instructions that free them to those that allocate them.

    What may be fused is one part, which waits and is waited for as a whole.
    """

    def __init__(self, program: Program, instructions: Instructions, changes: InPlace) -> None:
        self.program = program
        self.instructions = instructions
        self.parts = _parts(instructions)
        self.part_of = {number: part for part, each in enumerate(self.parts) for number in each}
        self.size = sizes_of_buffers(instructions)
        # What is free: bytes, and the parts that used them, the longest ago first.
        self.free = deque([(most_live_bytes(instructions), frozenset[int]())])
        self.users: dict[int, set[int]] = defaultdict(set)  # by buffer, parts
        self.ran: dict[int, list[int]] = defaultdict(list)  # by operation, parts
        self.behind: list[int] = []  # by part, as bits, the parts that have ended when it starts
        self.copied = changes.copied

    def run(self) -> Iterator[Instruction]:
        ended = 0  # as bits: parts that another one waits for
        for part, numbers in enumerate(self.parts):
            before = self._before(part, numbers)
            waits, behind = self._not_implied(before)
            self.behind.append(behind)
            ended |= behind
            first = tuple(self.parts[each][-1] for each in sorted(waits)) or (START,)
            for number in numbers:
                each = self.instructions[number]
                is_first = each.waits_for and each.kernel is not Kernel.BARRIER
                yield replace(each, waits_for=first) if is_first else each
            self._after(part, numbers)
        last = [part for part in range(len(self.parts)) if not ended >> part & 1]
        waits_for = tuple(self.parts[each][-1] for each in last) or (START,)
        yield replace(self.instructions[-1], waits_for=waits_for)

    def _before(self, part: int, numbers: Sequence[int]) -> set[int]:
        """All parts that this one has to wait for."""
        before: set[int] = set()
        bytes_needed = 0
        for number in numbers:
            each = self.instructions[number]
            before.update(self._for_effects(each))
            bytes_needed += sum(self.size[buffer] for buffer, _ in each.writes) + _passing(each)
            if each.takes_over is not None:  # which it does if nobody else holds it
                before |= self.users[each.takes_over]
            if each.operation in self.copied:  # read, and copied, once this has been waited for
                before.update(self.part_of[by] for _, by in each.reads)
            if each.recomputed and each.operation is not None:
                # TensorFlow joins operations that are equal in what they read and wait for.
                before.add(max(self.ran[each.operation][-1] + 1, part - _AHEAD))
        before |= self._taken(bytes_needed)
        return before - {part}

    def _for_effects(self, each: Instruction) -> Iterator[int]:
        """Parts that run before it whatever it reads, as who reads a variable before its write."""
        operations = _stands_for(each)
        first = frozenset().union(*(self.program.order[number] for number in operations))
        for operation in first - operations:
            yield from self.ran[operation]

    def _taken(self, size: int) -> set[int]:
        """Take so many free bytes; returns who used them."""
        users: set[int] = set()
        while size:
            there, by = self.free.popleft()
            users |= by
            if there > size:
                self.free.appendleft((there - size, by))
            size -= min(size, there)
        return users

    def _not_implied(self, before: Collection[int]) -> tuple[list[int], int]:
        """Those of some parts that no other one of them waits for; and as bits, all behind them."""
        waits: list[int] = []
        behind = 0
        for each in sorted(before, reverse=True):
            if not behind >> each & 1:
                waits.append(each)
                behind |= self.behind[each] | 1 << each
        return waits, behind

    def _after(self, part: int, numbers: Sequence[int]) -> None:
        """Note what it used, and free what nobody needs any more."""
        here = frozenset([part])
        for number in numbers:
            each = self.instructions[number]
            for operation in _stands_for(each):
                self.ran[operation].append(part)
            for buffer in (*each.uses, *(buffer for buffer, _ in each.writes)):
                self.users[buffer].add(part)
            if passing := _passing(each):
                self.free.append((passing, here))
            for buffer in _given_up(each):
                self.free.append((self.size[buffer], frozenset(self.users.pop(buffer))))


def _parts(instructions: Instructions) -> list[list[int]]:
    """Numbers of the instructions that wait, and are waited for, as one; the last is the return."""
    parts: list[list[int]] = []
    for number, each in enumerate(instructions[:-1]):
        inside = each.kernel is Kernel.BARRIER or not each.waits_for
        if parts and (inside or each.waits_for == instructions[parts[-1][0]].waits_for):
            parts[-1].append(number)
        else:
            parts.append([number])
    return parts


def _stands_for(each: Instruction) -> frozenset[int]:
    """The operations that an instruction does."""
    replaced = frozenset() if each.update is None else frozenset(each.update.replaced)
    return replaced if each.operation is None else replaced | {each.operation}
