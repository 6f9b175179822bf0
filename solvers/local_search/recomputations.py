"""Moves that compute values again, or no longer; everything here is compiled."""

from __future__ import annotations

from solvers.local_search.compilation import compiled
from solvers.local_search.positions import (
    empty_near,
    expiry,
    held,
    is_focused,
    latest_allowed,
    next_reader,
    random_occupied,
    slot_over_budget,
)
from solvers.local_search.search_state import (
    COMPUTATIONS,
    DRAGGED,
    JOURNAL,
    REPEATED,
    Tape,
    excess_gained,
    insert,
    last_reader,
    latest_before,
    random_below,
    remove,
)

UNTARGETED_ONE_IN = 8  # repeats: that one may be of a value that frees nothing over budget
INPUT_ONE_IN = 4  # inputs of a repeat that are gone: that one is repeated, not held for it
DEAR, DEAR_ONE_IN = 2.0, 2  # the same where holding it is so many times as dear as repeating it
# Repeats: that one is made while the inputs still live, not just before it is read; the second
# where something is over budget.
EARLY_ONE_IN, EARLY_OVER_ONE_IN = 4, 2


@compiled
def while_inputs_live(tape: Tape, node: int, after: int, use: int) -> int:
    """The last slot up to `use` until which every input of `node` lives that outlives `after`."""
    last = use
    for link in range(tape.reads.start[node], tape.reads.start[node + 1]):
        read = tape.reads.node[link]
        if tape.memory[read] == 0:
            continue
        end = tape.end[read, latest_before(tape, read, after)]
        if end > after + 1:
            last = min(last, end)
    return int(last)


@compiled
def random_read(tape: Tape) -> tuple[int, int]:
    """A node, and a slot before which to repeat it for a later read; −1 where there is none."""
    use = random_occupied(tape)
    user = tape.occupant[use]
    links = tape.reads.start[user + 1] - tape.reads.start[user]
    if links == 0:
        return -1, use
    link = tape.reads.start[user] + random_below(tape, links)
    node = tape.reads.node[link]
    if random_below(tape, EARLY_ONE_IN) == 0:
        made = tape.slot[node, latest_before(tape, node, use)]
        use = while_inputs_live(tape, node, last_reader(tape, node, made, use), use)
    return int(node), use


@compiled
def held_over_budget(tape: Tape) -> tuple[int, int]:
    """The same for a value that is held where the tape is over budget."""
    slot = slot_over_budget(tape)
    node = held(tape, slot)
    if node < 0:
        return -1, slot
    use = next_reader(tape, node, slot)
    if random_below(tape, EARLY_OVER_ONE_IN) == 0:
        use = while_inputs_live(tape, node, slot, use)
    return node, use


@compiled
def may_repeat(tape: Tape, node: int) -> bool:
    """Whether another computation of `node` can be of use."""
    room = tape.times[node] < tape.slot.shape[1] and tape.totals[JOURNAL] < DRAGGED
    return bool(room and tape.recomputable[node] and tape.memory[node] > 0)


@compiled
def repeats_input(tape: Tape, read: int, held: float) -> bool:
    """Whether to repeat an input rather than hold it longer, which would be worse by `held`.

    Always deciding by price makes repeats grow without end where memory is short.
    """
    if random_below(tape, INPUT_ONE_IN) == 0:
        return True
    return held > DEAR * tape.cost[read] and random_below(tape, DEAR_ONE_IN) == 0


@compiled
def add_repeat(tape: Tape, price: float, allowed: float) -> bool:
    """Compute again, before a read of it, a value and maybe some of its inputs.

    Most repeats cost more than the excess that they could free at best is worth, less what inputs
    that are held longer for them add. That is known before anything is done; those that are worse
    by more than `allowed` are not tried.
    """
    if 5 * tape.totals[COMPUTATIONS] > 4 * len(tape.occupant):
        return False
    read, use = held_over_budget(tape) if is_focused(tape) else random_read(tape)
    if read < 0 or not may_repeat(tape, read):
        return False
    k = latest_before(tape, read, use)
    made = tape.slot[read, k]
    last = last_reader(tape, read, made, use)
    memory = tape.memory[read]
    freed = -excess_gained(tape, last + 1, use - 1, -memory)
    if freed == 0 and random_below(tape, UNTARGETED_ONE_IN) > 0:
        return False
    # Where the old repeat goes, and what only it had read, nothing is known in advance.
    is_sure = k == 0 or last != made
    most = tape.total_cost[0] + allowed + price * freed  # what all may cost
    pending = tape.moved
    pending[0, 0], pending[0, 1] = read, use
    count = 1
    any_added = False
    while count > 0:
        count -= 1
        node, before = pending[count, 0], pending[count, 1]
        if not may_repeat(tape, node):
            continue
        k = latest_before(tape, node, before)
        made = tape.slot[node, k]
        slot = empty_near(tape, before - 1, made, before)
        if slot < 0 or slot > expiry(tape, node):
            continue
        for each in range(tape.reads.start[node], tape.reads.start[node + 1]):
            if is_sure and tape.total_cost[0] + tape.cost[node] > most:
                break
            read = tape.reads.node[each]
            if tape.memory[read] == 0 or count >= DRAGGED:
                continue
            last = tape.end[read, latest_before(tape, read, slot)]
            if last >= slot:
                continue
            shift = 0 if any_added else -memory
            held = price * excess_gained(tape, last + 1, slot, tape.memory[read], shift)
            if repeats_input(tape, read, held):
                pending[count, 0], pending[count, 1] = read, slot
                count += 1
            else:
                most -= held
        if is_sure and tape.total_cost[0] + tape.cost[node] > most:
            break
        insert(tape, node, slot)
        drop_useless(tape, node, k)
        any_added = is_sure = True
    return any_added


@compiled
def drop_repeat(tape: Tape, price: float, allowed: float) -> bool:
    """Remove a repeat and what only it had read.

    Not tried where it is known to be worse by more than `allowed`: what is held instead adds more
    excess than the repeat costs and its inputs free.
    """
    if tape.totals[REPEATED] == 0:
        return False
    node = tape.repeated[random_below(tape, tape.totals[REPEATED])]
    k = 1 + random_below(tape, tape.times[node] - 1)
    slot = tape.slot[node, k]
    memory = tape.memory[node]
    worse = price * excess_gained(tape, tape.end[node, k - 1] + 1, slot - 1, memory)
    worse -= tape.cost[node]
    if tape.end[node, k] > slot and worse > allowed:
        for link in range(tape.reads.start[node], tape.reads.start[node + 1]):
            read = tape.reads.node[link]
            at = latest_before(tape, read, slot)
            if tape.end[read, at] != slot:
                continue
            last = last_reader(tape, read, tape.slot[read, at], slot)
            if at > 0 and last == tape.slot[read, at]:
                # It goes, too, and perhaps more with it: try.
                worse = allowed
                break
            worse += price * excess_gained(tape, last + 1, slot, -tape.memory[read], memory)
        if worse > allowed:
            return False
    remove(tape, node, slot)
    drop_inputs(tape, node, slot)
    return True


@compiled
def merge_first(tape: Tape) -> bool:
    """Drop a first computation that nobody reads before the second, which takes its place."""
    if tape.totals[REPEATED] == 0:
        return False
    node = tape.repeated[random_below(tape, tape.totals[REPEATED])]
    slot = tape.slot[node, 0]
    if tape.end[node, 0] != slot or latest_allowed(tape, node, 0) < tape.slot[node, 1]:
        return False
    remove(tape, node, slot)
    return True


@compiled
def drop_useless(tape: Tape, node: int, k: int) -> None:
    """Remove the repeat k of `node` if nobody reads it, and then what only it had read."""
    if k <= 0 or tape.memory[node] == 0 or tape.end[node, k] != tape.slot[node, k]:
        return
    slot = tape.slot[node, k]
    remove(tape, node, slot)
    drop_inputs(tape, node, slot)


@compiled
def drop_inputs(tape: Tape, node: int, slot: int) -> None:
    """After a repeat of `node` in `slot` is gone: drop the repeats that only it had read."""
    pending = tape.pending
    pending[0, 0], pending[0, 1] = node, slot
    count = 1
    while count > 0:
        count -= 1
        node, slot = pending[count, 0], pending[count, 1]
        for link in range(tape.reads.start[node], tape.reads.start[node + 1]):
            read = tape.reads.node[link]
            if tape.memory[read] == 0:
                continue
            if count == len(pending) or tape.totals[JOURNAL] + DRAGGED > len(tape.journal):
                break
            k = latest_before(tape, read, slot)
            if k > 0 and tape.end[read, k] == tape.slot[read, k]:
                made = tape.slot[read, k]
                remove(tape, read, made)
                pending[count, 0], pending[count, 1] = read, made
                count += 1
