"""Where computations stand on a tape, and where they may; everything here is compiled."""

from __future__ import annotations

from solvers.local_search.compilation import compiled
from solvers.local_search.search_state import BLOCK, EXCESS, Tape, latest_before, random_below

REACH = 96  # how far a move looks for an empty slot
TRIES = 24  # nodes that are looked at for one that is held at a given slot


@compiled
def random_occupied(tape: Tape) -> int:
    """A slot that holds a computation."""
    while True:
        slot = random_below(tape, len(tape.occupant))
        if tape.occupant[slot] >= 0:
            return slot


@compiled
def empty_near(tape: Tape, slot: int, low: int, high: int) -> int:
    """The empty slot in (low, high) nearest to `slot`, −1 if none is near; below goes first."""
    for distance in range(REACH):
        below, above = slot - distance, slot + distance
        if low < below < high and tape.occupant[below] < 0:
            return below
        if low < above < high and tape.occupant[above] < 0:
            return above
    return -1


@compiled
def first_slot(tape: Tape, node: int) -> int:
    """Slot of the first computation."""
    return int(tape.slot[node, 0])


@compiled
def expiry(tape: Tape, node: int) -> int:
    """The slot before which every computation of `node` must be."""
    limit = len(tape.occupant)
    for link in range(tape.expired_by.start[node], tape.expired_by.start[node + 1]):
        limit = min(limit, first_slot(tape, tape.expired_by.node[link]))
    return limit


@compiled
def earliest_allowed(tape: Tape, node: int, k: int) -> int:
    """The slot after which computation k of `node` can stand with reads and readers as before."""
    slot = tape.slot[node, k]
    low = tape.slot[node, k - 1] if k > 0 else -1
    for link in range(tape.reads.start[node], tape.reads.start[node + 1]):
        read = tape.reads.node[link]
        low = max(low, tape.slot[read, latest_before(tape, read, slot)])
    if k == 0:
        for link in range(tape.before.start[node], tape.before.start[node + 1]):
            low = max(low, first_slot(tape, tape.before.node[link]))
        for link in range(tape.expires.start[node], tape.expires.start[node + 1]):
            expired = tape.expires.node[link]
            low = max(low, tape.slot[expired, tape.times[expired] - 1])
    return low


@compiled
def latest_allowed(tape: Tape, node: int, k: int) -> int:
    """The slot before which the computation k of `node` can stand; the next repeat is ignored."""
    slot = tape.slot[node, k]
    high = min(expiry(tape, node), next_reader(tape, node, slot))
    if k == 0:
        for link in range(tape.behind.start[node], tape.behind.start[node + 1]):
            high = min(high, first_slot(tape, tape.behind.node[link]))
    return high


@compiled
def next_reader(tape: Tape, node: int, slot: int) -> int:
    """The first slot after `slot` that reads `node`, repeats of `node` aside."""
    first = len(tape.occupant)
    for link in range(tape.users.start[node], tape.users.start[node + 1]):
        user = tape.users.node[link]
        reader = latest_before(tape, user, slot + 1) + 1
        if reader < tape.times[user]:
            first = min(first, tape.slot[user, reader])
    return first


@compiled
def is_focused(tape: Tape) -> bool:
    """Whether to make a move where the tape is over budget, which may be in few places."""
    return tape.totals[EXCESS] > 0 and random_below(tape, 2) == 0


@compiled
def slot_over_budget(tape: Tape) -> int:
    """A random slot that is over budget; there must be one."""
    block = random_below(tape, len(tape.high))
    while tape.high[block] <= 0:
        block = (block + 1) % len(tape.high)
    place = random_below(tape, BLOCK)
    while tape.profile[block, place] + tape.addend[block] <= 0:
        place = (place + 1) % BLOCK
    return block * BLOCK + place


@compiled
def held(tape: Tape, slot: int) -> int:
    """A random node whose value is held in `slot` for a later one; −1 if a few tries find none."""
    for _ in range(TRIES):
        node = random_below(tape, len(tape.times))
        k = latest_before(tape, node, slot)
        if k >= 0 and tape.end[node, k] > slot:
            return node
    return -1
