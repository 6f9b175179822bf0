"""Simulated annealing over schedules on a tape; everything here is compiled.

A sequence is valid once the first computations are in an order that the dependencies allow, so
repeats are free to come and go. Moves: compute a value again just before a use of it; drop a
repeat; shift a computation between what it reads and what reads it; drag a first computation
together with all that would have to follow, or to precede, it. The objective is
cost + price × excess; the price of excess rises while the tape is over budget and falls while it
is under. Where it has risen so high that nothing moves any more, it starts again from low down,
which loosens what is stuck and keeps the rest. Method: Kirkpatrick et al. (1983); for this
problem, "FastSA" (see the README).
"""

from __future__ import annotations

import math

from solvers.tape import (
    COMPUTATIONS,
    DRAGGED,
    EXCESS,
    JOURNAL,
    REPEATED,
    Tape,
    compiled,
    excess_above,
    insert,
    keep_best,
    last_reader,
    latest_before,
    random_below,
    random_unit,
    remove,
    slot_over_budget,
    undo,
)

UNTARGETED_ONE_IN = 8  # repeats: that one may be of a value that frees nothing over budget
TRIES = 24  # nodes that are looked at for one that is held at a given slot
REACH = 96  # how far a move looks for an empty slot
PRICE_STEPS = 64  # moves between two changes of the price
PRICE_CHANGE = 1.05
PRICE_RANGE = 2e2  # highest price ÷ the one from which it starts again


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
            if tape.memory[read] == 0 or not tape.reads.always[link]:
                continue
            if count == len(pending) or tape.totals[JOURNAL] + DRAGGED > len(tape.journal):
                break
            k = latest_before(tape, read, slot)
            if k > 0 and tape.end[read, k] == tape.slot[read, k]:
                made = tape.slot[read, k]
                remove(tape, read, made)
                pending[count, 0], pending[count, 1] = read, made
                count += 1


@compiled
def may_repeat(tape: Tape, node: int) -> bool:
    """Whether another computation of `node` can be of use."""
    room = tape.times[node] < tape.slot.shape[1] and tape.totals[JOURNAL] < DRAGGED
    return bool(room and tape.recomputable[node] and tape.memory[node] > 0)


@compiled
def random_read(tape: Tape) -> tuple[int, int]:
    """A node, and a slot that reads it; −1 for the node where there is none."""
    use = random_occupied(tape)
    user = tape.occupant[use]
    links = tape.reads.start[user + 1] - tape.reads.start[user]
    if links == 0:
        return -1, use
    link = tape.reads.start[user] + random_below(tape, links)
    if not tape.reads.always[link] and first_slot(tape, user) != use:
        return -1, use
    return int(tape.reads.node[link]), use


@compiled
def is_focused(tape: Tape) -> bool:
    """Whether to make a move where the tape is over budget, which may be in few places."""
    return tape.totals[EXCESS] > 0 and random_below(tape, 2) == 0


@compiled
def held(tape: Tape, slot: int) -> int:
    """A random node whose value is held in `slot` for a later one; −1 if a few tries find none."""
    for _ in range(TRIES):
        node = random_below(tape, len(tape.times))
        k = latest_before(tape, node, slot)
        if k >= 0 and tape.end[node, k] > slot:
            return node
    return -1


@compiled
def held_over_budget(tape: Tape) -> tuple[int, int]:
    """A node whose value is held where the tape is over budget, and the next slot that reads it."""
    slot = slot_over_budget(tape)
    node = held(tape, slot)
    if node < 0:
        return -1, slot
    return node, next_reader(tape, node, slot)


@compiled
def next_reader(tape: Tape, node: int, slot: int) -> int:
    """The first slot after `slot` that reads `node`, repeats of `node` aside."""
    first = len(tape.occupant)
    for link in range(tape.users.start[node], tape.users.start[node + 1]):
        user = tape.users.node[link]
        reader = 0
        if tape.users.always[link]:
            reader = latest_before(tape, user, slot + 1) + 1
        if reader < tape.times[user] and tape.slot[user, reader] > slot:
            first = min(first, tape.slot[user, reader])
    return first


@compiled
def add_repeat(tape: Tape, price: float, allowed: float) -> bool:
    """Compute again, just before a use of it, a value and maybe some of its inputs.

    Most repeats cost more than the excess that they could free at best is worth, which is known
    before anything is done; those that are worse by more than `allowed` are not tried.
    """
    if 5 * tape.totals[COMPUTATIONS] > 4 * len(tape.occupant):
        return False
    read, use = held_over_budget(tape) if is_focused(tape) else random_read(tape)
    if read < 0 or not may_repeat(tape, read):
        return False
    k = latest_before(tape, read, use)
    made = tape.slot[read, k]
    last = last_reader(tape, read, made, use)
    freed = excess_above(tape, last + 1, use - 1, tape.memory[read])
    if freed == 0 and random_below(tape, UNTARGETED_ONE_IN) > 0:
        return False
    replaces = k > 0 and last == made
    most = allowed + price * freed  # what it may cost
    if not replaces and tape.cost[read] > most:
        return False
    most += tape.total_cost[0]
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
            read = tape.reads.node[each]
            if not tape.reads.always[each] or tape.memory[read] == 0 or count >= DRAGGED:
                continue
            last = tape.end[read, latest_before(tape, read, slot)]
            if last < slot and random_below(tape, 4) == 0:
                pending[count, 0], pending[count, 1] = read, slot
                count += 1
        insert(tape, node, slot)
        any_added = True
        drop_useless(tape, node, k)
        if tape.total_cost[0] > most:
            break
    return any_added


@compiled
def drop_repeat(tape: Tape) -> bool:
    """Remove a repeat and what only it had read."""
    if tape.totals[REPEATED] == 0:
        return False
    node = tape.repeated[random_below(tape, tape.totals[REPEATED])]
    slot = tape.slot[node, 1 + random_below(tape, tape.times[node] - 1)]
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
def earliest_allowed(tape: Tape, node: int, k: int) -> int:
    """The slot after which computation k of `node` can stand with reads and readers as before."""
    slot = tape.slot[node, k]
    low = tape.slot[node, k - 1] if k > 0 else -1
    for link in range(tape.reads.start[node], tape.reads.start[node + 1]):
        if k == 0 or tape.reads.always[link]:
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
def shift(tape: Tape) -> bool:
    """Move one computation to another place between what it reads and what reads it."""
    slot = random_occupied(tape)
    node = tape.occupant[slot]
    k = latest_before(tape, node, slot + 1)
    low, high = earliest_allowed(tape, node, k), latest_allowed(tape, node, k)
    if k + 1 < tape.times[node]:
        high = min(high, tape.slot[node, k + 1])
    if high - low <= 2:
        return False
    where = random_below(tape, 4)
    if where == 0:
        target = low + 1
    elif where == 1:
        target = high - 1
    else:
        target = low + 1 + random_below(tape, high - low - 1)
    target = empty_near(tape, target, low, high)
    if target < 0:
        return False
    remove(tape, node, slot)
    insert(tape, node, target)
    return True


@compiled
def must_follow(tape: Tape, slot: int) -> bool:
    """Whether the computation in `slot` has to stay behind one of the marked earlier ones."""
    node = tape.occupant[slot]
    if tape.mark[node] >= 0:
        return True
    is_first = first_slot(tape, node) == slot
    for link in range(tape.reads.start[node], tape.reads.start[node + 1]):
        made = tape.mark[tape.reads.node[link]]
        if made >= 0 and (is_first or tape.reads.always[link]):
            read = tape.reads.node[link]
            if tape.slot[read, latest_before(tape, read, slot)] == made:
                return True
    if not is_first:
        return False
    for link in range(tape.before.start[node], tape.before.start[node + 1]):
        made = tape.mark[tape.before.node[link]]
        if made >= 0 and first_slot(tape, tape.before.node[link]) == made:
            return True
    for link in range(tape.expires.start[node], tape.expires.start[node + 1]):
        if tape.mark[tape.expires.node[link]] >= 0:
            return True
    return False


@compiled
def must_precede(tape: Tape, slot: int) -> bool:
    """Whether the computation in `slot` has to stay ahead of one of the marked later ones."""
    node = tape.occupant[slot]
    if tape.mark[node] >= 0:
        return True
    for link in range(tape.users.start[node], tape.users.start[node + 1]):
        user = tape.users.node[link]
        use = tape.mark[user]
        reads = use >= 0 and (tape.users.always[link] or first_slot(tape, user) == use)
        if reads and tape.slot[node, latest_before(tape, node, use)] == slot:
            return True
    for link in range(tape.expired_by.start[node], tape.expired_by.start[node + 1]):
        other = tape.expired_by.node[link]
        if tape.mark[other] == first_slot(tape, other):
            return True
    if first_slot(tape, node) != slot:
        return False
    for link in range(tape.behind.start[node], tape.behind.start[node + 1]):
        other = tape.behind.node[link]
        if tape.mark[other] == first_slot(tape, other):
            return True
    return False


@compiled
def drag(tape: Tape) -> bool:
    """Move a computation far, together with all that has to stay behind, or ahead of, it."""
    start = random_occupied(tape)
    step = 1 if random_below(tape, 2) == 0 else -1
    reach = int(2.0 ** (3.0 + random_unit(tape) * (math.log2(len(tape.occupant)) - 4.0)))
    if is_focused(tape):
        over = slot_over_budget(tape)
        node = held(tape, over)
        if node < 0:
            return False
        k = latest_before(tape, node, over)
        start = tape.slot[node, k] if step > 0 else tape.end[node, k]
        reach += abs(over - start)
    most = int(2.0 ** (random_unit(tape) * math.log2(DRAGGED + 0.5)))
    moved = tape.moved
    moved[0, 1] = start
    moved[0, 0] = tape.occupant[start]
    tape.mark[moved[0, 0]] = start
    count = 1
    last = start
    for _ in range(reach):
        slot = last + step
        if slot < 0 or slot >= len(tape.occupant):
            break
        if tape.occupant[slot] >= 0:
            bound = must_follow(tape, slot) if step > 0 else must_precede(tape, slot)
            if bound and (count == most or tape.mark[tape.occupant[slot]] >= 0):
                break
            if bound:
                tape.mark[tape.occupant[slot]] = slot
                moved[count, 0], moved[count, 1] = tape.occupant[slot], slot
                count += 1
        last = slot
    for at in range(count):
        tape.mark[moved[at, 0]] = -1
    move_to(tape, count, last, step)
    return True


@compiled
def move_to(tape: Tape, count: int, last: int, step: int) -> None:
    """Put the computations in `tape.moved`, in their order, into the free slots up to `last`."""
    for at in range(count):
        remove(tape, tape.moved[at, 0], tape.moved[at, 1])
    slot = last
    for at in range(count - 1, -1, -1):
        while tape.occupant[slot] >= 0:
            slot -= step
        insert(tape, tape.moved[at, 0], slot)
        slot -= step


@compiled
def move(tape: Tape, free: bool, price: float, allowed: float) -> bool:
    """One random change; false if it came to nothing, or would be worse by more than `allowed`."""
    kind = random_below(tape, 100)
    if kind < 50:
        return add_repeat(tape, price, allowed)
    if kind < 72:
        return drop_repeat(tape)
    if kind < 75:
        return merge_first(tape) if free else drop_repeat(tape)
    if free and kind < 85:
        return drag(tape)
    return shift(tape)


@compiled
def anneal(
    tape: Tape,
    moves: int,
    hot: float,
    cold: float,
    price: float,
    highest_price: float,
    free: bool,
    limit: float,
) -> tuple[float, int]:
    """Run `moves` moves at temperatures from `hot` to `cold`.

    Returns:
        The price at the end, and the length of the schedule in `tape.best`: the cheapest under
        budget that costs less than `limit`; 0 if there is none.
    """
    best = limit
    length = 0
    under = 0
    cooling = (cold / hot) ** (1.0 / max(1, moves))
    temperature = hot
    for number in range(moves):
        temperature *= cooling
        cost, excess = tape.total_cost[0], tape.totals[EXCESS]
        tape.totals[JOURNAL] = 0
        allowed = -temperature * math.log(1.0 - random_unit(tape))
        if move(tape, free, price, allowed):
            worse = tape.total_cost[0] - cost + price * (tape.totals[EXCESS] - excess)
            if worse > allowed:
                undo(tape)
        if tape.totals[EXCESS] == 0:
            under += 1
            if tape.total_cost[0] < best * (1 - 1e-9):
                best = tape.total_cost[0]
                length = keep_best(tape)
        if number % PRICE_STEPS == PRICE_STEPS - 1:
            price = price / PRICE_CHANGE if 4 * under > PRICE_STEPS else price * PRICE_CHANGE
            if price > highest_price:
                price = highest_price / PRICE_RANGE
            under = 0
    return price, length
