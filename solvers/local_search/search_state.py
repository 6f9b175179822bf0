"""A schedule on a tape of slots, with its memory profile kept up to date move by move.

Each slot holds one computation or nothing; computations run in slot order. Every node has the
ascending list of its slots. A value lives from its slot to the last slot that reads it before it
is computed again, so one insertion or removal changes a few lifetimes, each a range of slots.
The profile `memory − budget` is kept in blocks of slots with a lazy addend and the extremes of
each block, so that a range costs time in proportion to its blocks and the total excess
Σ max(0, memory − budget) is always known. Both parts may overflow 32 bits, their sum does not. An
empty slot carries what lives across it: never more than the slot before, so the excess is zero
exactly if the schedule is under budget.

All functions here are compiled; see `solvers.local_search.compilation`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int32
from numpy.typing import NDArray

from solvers.local_search.compilation import compiled, compiled_entry

Integers = NDArray[np.int64]
SmallIntegers = NDArray[np.int32]

BLOCK_BITS = 6
BLOCK = 1 << BLOCK_BITS
LARGEST = 2**31 - 1

# Places in `Tape.totals`.
EXCESS, COMPUTATIONS, REPEATED, JOURNAL, RANDOM = 0, 1, 2, 3, 4
TOTALS = 5

DRAGGED = 24  # most computations that one move drags along


class Links(NamedTuple):
    """One relation between nodes: those of node i are `node[start[i]:start[i + 1]]`."""

    start: Integers
    node: Integers


class Tape(NamedTuple):
    """A schedule in slots; see the module. Slots without a computation hold −1.

    Attributes:
        cost, memory, workspace, recomputable: of every node; sizes in units, see `tape_layout`.
        reads, users: who reads whom.
        before, behind: whose first computations must come before, or after, a node's own.
        expired_by, expires: before whose first computation all of a node's must come, and back.
        occupant: the node in every slot.
        times, slot, end: how often a node is computed, in which slots, and each value's last slot.
        profile, addend, high, low: memory − budget of every slot, shape (blocks, BLOCK), less
            what is added to a whole block, and the extremes of each block, that added.
        repeated, place: nodes that are computed more than once, and where they stand there.
        mark: of every node, the slot that a move has marked, or −1.
        pending, moved: room for a move's list of (node, slot), shape (2 DRAGGED, 2).
        best: the cheapest schedule under budget so far, padded.
        journal: what has been done since the last decision: (1 or −1, node, slot).
        total_cost: shape (1,).
        totals: see the constants above.
    """

    cost: NDArray[np.float64]
    memory: Integers
    workspace: Integers
    recomputable: NDArray[np.bool_]
    reads: Links
    users: Links
    before: Links
    behind: Links
    expired_by: Links
    expires: Links
    occupant: Integers
    times: Integers
    slot: Integers
    end: Integers
    profile: SmallIntegers
    addend: SmallIntegers
    high: SmallIntegers
    low: SmallIntegers
    repeated: Integers
    place: Integers
    mark: Integers
    pending: Integers
    moved: Integers
    best: Integers
    journal: Integers
    total_cost: NDArray[np.float64]
    totals: Integers


@compiled
def add_in_block(tape: Tape, block: int, first: int, last: int, change: int) -> None:
    """Add `change` to the places first…last of `block`.

    All of it in one pass over all places, in 32 bits and without branches, because that is what
    compilers turn into vector instructions.
    """
    small_change = int32(change)
    addend = tape.addend[block]
    gained = int32(0)
    high = int32(-LARGEST)
    low = int32(LARGEST)
    for place in range(BLOCK):
        old = int32(tape.profile[block, place] + addend)
        new = int32(old + (small_change if first <= place <= last else int32(0)))
        tape.profile[block, place] = new - addend
        gained = int32(gained + max(new, int32(0)) - max(old, int32(0)))
        high = max(high, new)
        low = min(low, new)
    tape.high[block] = high
    tape.low[block] = low
    tape.totals[EXCESS] += gained


@compiled
def add_to_block(tape: Tape, block: int, change: int) -> None:
    """Add `change` to all places of `block`."""
    high, low = tape.high[block], tape.low[block]
    if low >= 0 and low + change >= 0:
        tape.totals[EXCESS] += change * BLOCK
    elif high > 0 or high + change > 0:
        before = tape.addend[block]
        after = int32(before + change)
        gained = int32(0)
        for place in range(BLOCK):
            old = int32(tape.profile[block, place] + before)
            new = int32(tape.profile[block, place] + after)
            gained = int32(gained + max(new, int32(0)) - max(old, int32(0)))
        tape.totals[EXCESS] += gained
    tape.addend[block] += change
    tape.high[block] = high + change
    tape.low[block] = low + change


@compiled
def add_memory(tape: Tape, first: int, last: int, change: int) -> None:
    """Add `change` bytes to the slots first…last, both included; nothing if the range is empty."""
    if last < first:
        return
    first_block, last_block = first >> BLOCK_BITS, last >> BLOCK_BITS
    first, last = first & (BLOCK - 1), last & (BLOCK - 1)
    if first_block == last_block:
        add_in_block(tape, first_block, first, last, change)
        return
    add_in_block(tape, first_block, first, BLOCK - 1, change)
    for block in range(first_block + 1, last_block):
        add_to_block(tape, block, change)
    add_in_block(tape, last_block, 0, last, change)


@compiled
def excess_gained(tape: Tape, first: int, last: int, change: int, shift: int = 0) -> int:
    """What the excess would grow by if the slots first…last had `change` bytes more.

    Args:
        shift: bytes that these slots are taken to have more than they do, before and after.
    """
    total = 0
    for block in range(first >> BLOCK_BITS, (last >> BLOCK_BITS) + 1):
        if tape.high[block] + shift + max(change, 0) <= 0:
            continue
        start = max(first - (block << BLOCK_BITS), 0)
        stop = min(last - (block << BLOCK_BITS), BLOCK - 1) + 1
        base = int32(tape.addend[block] + shift)
        small_change = int32(change)
        for place in range(start, stop):
            old = int32(tape.profile[block, place] + base)
            total += max(int32(old + small_change), int32(0)) - max(old, int32(0))
    return total


@compiled
def latest_before(tape: Tape, node: int, slot: int) -> int:
    """Index of the last computation of `node` before `slot`, or −1."""
    k = int(tape.times[node]) - 1
    while k >= 0 and tape.slot[node, k] >= slot:
        k -= 1
    return k


@compiled
def last_reader(tape: Tape, node: int, made: int, limit: int) -> int:
    """The last slot in (made, limit) that reads `node`; `made` itself if there is none."""
    last = made
    for link in range(tape.users.start[node], tape.users.start[node + 1]):
        user = tape.users.node[link]
        k = latest_before(tape, user, limit)
        if k >= 0:
            last = max(last, tape.slot[user, k])
    return last


@compiled
def begin_read(tape: Tape, node: int, slot: int) -> None:
    """A computation in `slot` now reads `node`: its value lives at least as long."""
    if tape.memory[node] == 0:
        return
    k = latest_before(tape, node, slot)
    if k >= 0 and tape.end[node, k] < slot:
        add_memory(tape, tape.end[node, k] + 1, slot, tape.memory[node])
        tape.end[node, k] = slot


@compiled
def end_read(tape: Tape, node: int, slot: int) -> None:
    """The computation in `slot` no longer reads `node`: its value may end earlier."""
    if tape.memory[node] == 0:
        return
    k = latest_before(tape, node, slot)
    if k >= 0 and tape.end[node, k] == slot:
        last = last_reader(tape, node, tape.slot[node, k], slot)
        add_memory(tape, last + 1, slot, -tape.memory[node])
        tape.end[node, k] = last


@compiled
def insert(tape: Tape, node: int, slot: int) -> None:
    """Compute `node` in the empty `slot`."""
    count = tape.times[node]
    k = latest_before(tape, node, slot) + 1
    for later in range(count, k, -1):
        tape.slot[node, later] = tape.slot[node, later - 1]
        tape.end[node, later] = tape.end[node, later - 1]
    tape.slot[node, k] = slot
    tape.end[node, k] = slot
    tape.times[node] = count + 1
    tape.occupant[slot] = node
    memory = tape.memory[node]
    if memory > 0:
        if k == 0:
            limit = tape.slot[node, 1] if count > 0 else len(tape.occupant)
            tape.end[node, 0] = last_reader(tape, node, slot, limit)
            add_memory(tape, slot, tape.end[node, 0], memory)
        elif tape.end[node, k - 1] > slot:
            tape.end[node, k] = tape.end[node, k - 1]
            last = last_reader(tape, node, tape.slot[node, k - 1], slot)
            tape.end[node, k - 1] = last
            add_memory(tape, last + 1, slot - 1, -memory)
        else:
            add_memory(tape, slot, slot, memory)
    if tape.workspace[node] > 0:
        add_memory(tape, slot, slot, tape.workspace[node])
    for link in range(tape.reads.start[node], tape.reads.start[node + 1]):
        begin_read(tape, tape.reads.node[link], slot)
    if count == 1:
        tape.place[node] = tape.totals[REPEATED]
        tape.repeated[tape.totals[REPEATED]] = node
        tape.totals[REPEATED] += 1
    tape.totals[COMPUTATIONS] += 1
    tape.total_cost[0] += tape.cost[node]
    note(tape, 1, node, slot)


@compiled
def remove(tape: Tape, node: int, slot: int) -> None:
    """Undo `insert`."""
    k = latest_before(tape, node, slot + 1)
    memory, end = tape.memory[node], tape.end[node, k]
    if memory > 0:
        if k == 0:
            add_memory(tape, slot, end, -memory)
        elif end > slot:
            add_memory(tape, tape.end[node, k - 1] + 1, slot - 1, memory)
            tape.end[node, k - 1] = end
        else:
            add_memory(tape, slot, slot, -memory)
    count = tape.times[node] - 1
    for later in range(k, count):
        tape.slot[node, later] = tape.slot[node, later + 1]
        tape.end[node, later] = tape.end[node, later + 1]
    tape.times[node] = count
    tape.occupant[slot] = -1
    if tape.workspace[node] > 0:
        add_memory(tape, slot, slot, -tape.workspace[node])
    for link in range(tape.reads.start[node], tape.reads.start[node + 1]):
        end_read(tape, tape.reads.node[link], slot)
    if count == 1:
        tape.totals[REPEATED] -= 1
        moved = tape.repeated[tape.totals[REPEATED]]
        tape.repeated[tape.place[node]] = moved
        tape.place[moved] = tape.place[node]
    tape.totals[COMPUTATIONS] -= 1
    tape.total_cost[0] -= tape.cost[node]
    note(tape, -1, node, slot)


@compiled
def note(tape: Tape, what: int, node: int, slot: int) -> None:
    """Write into the journal; a full one ends the note-taking, which `annealing` never allows."""
    at = tape.totals[JOURNAL]
    if at < len(tape.journal):
        tape.journal[at, 0] = what
        tape.journal[at, 1] = node
        tape.journal[at, 2] = slot
    tape.totals[JOURNAL] = at + 1


@compiled
def undo(tape: Tape) -> None:
    """Take back everything in the journal, latest first."""
    for at in range(tape.totals[JOURNAL] - 1, -1, -1):
        if tape.journal[at, 0] == 1:
            remove(tape, tape.journal[at, 1], tape.journal[at, 2])
        else:
            insert(tape, tape.journal[at, 1], tape.journal[at, 2])
    tape.totals[JOURNAL] = 0


@compiled
def random_bits(tape: Tape) -> int:
    """36 random bits, by a linear congruential generator modulo 2**64."""
    state = int(tape.totals[RANDOM]) * 3935559000370003845 + 2691343689449507681
    tape.totals[RANDOM] = state
    return (state >> 27) & 0xFFFFFFFFF


@compiled
def random_below(tape: Tape, limit: int) -> int:
    """A whole number in [0, limit)."""
    return random_bits(tape) % limit


@compiled
def random_unit(tape: Tape) -> float:
    """A number in [0, 1)."""
    return random_bits(tape) / 0x1000000000


@compiled_entry
def lay(tape: Tape, steps: Integers, budget: int) -> None:
    """Write the schedule `steps` on the tape, spread evenly."""
    tape.occupant[:] = -1
    tape.times[:] = 0
    tape.profile[:] = -budget
    tape.addend[:] = 0
    tape.high[:] = -budget
    tape.low[:] = -budget
    tape.totals[EXCESS] = 0
    tape.totals[COMPUTATIONS] = 0
    tape.totals[REPEATED] = 0
    tape.total_cost[0] = 0.0
    spacing = len(tape.occupant) / (len(steps) + 1)
    for position in range(len(steps)):
        insert(tape, steps[position], int((position + 1) * spacing))
    tape.totals[JOURNAL] = 0


@compiled_entry
def keep_best(tape: Tape) -> int:
    """Copy the schedule that is on the tape to `tape.best`; its length."""
    length = 0
    for slot in range(len(tape.occupant)):
        if tape.occupant[slot] >= 0:
            tape.best[length] = tape.occupant[slot]
            length += 1
    return length
