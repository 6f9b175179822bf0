"""Simulated annealing over schedules on a tape; everything here is compiled.

A sequence is valid once the first computations are in an order that the dependencies allow, so
repeats are free to come and go. Moves: compute a value again just before a use of it, or while its
inputs still live; drop a repeat; shift a computation between what it reads and what reads it; drag
a first computation together with all that would have to follow, or to precede, it. The objective
is cost + price × excess; the price of excess rises while the tape is over budget and falls while
it is under. Where it has risen so high that nothing moves any more, it starts again from low down,
which loosens what is stuck and keeps the rest. Method: Kirkpatrick et al. (1983); for this
problem, "FastSA" (see the README).
"""

from __future__ import annotations

import math

from solvers.local_search.compilation import compiled, compiled_entry
from solvers.local_search.positions import (
    earliest_allowed,
    empty_near,
    first_slot,
    held,
    is_focused,
    latest_allowed,
    random_occupied,
    slot_over_budget,
)
from solvers.local_search.recomputations import add_repeat, drop_repeat, merge_first
from solvers.local_search.search_state import (
    DRAGGED,
    EXCESS,
    JOURNAL,
    Tape,
    insert,
    keep_best,
    latest_before,
    random_below,
    random_unit,
    remove,
    undo,
)

PRICE_STEPS = 64  # moves between two changes of the price
PRICE_CHANGE = 1.05
PRICE_RANGE = 2e2  # highest price ÷ the one from which it starts again


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
    for link in range(tape.reads.start[node], tape.reads.start[node + 1]):
        read = tape.reads.node[link]
        made = tape.mark[read]
        if made >= 0 and tape.slot[read, latest_before(tape, read, slot)] == made:
            return True
    if first_slot(tape, node) != slot:
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
        use = tape.mark[tape.users.node[link]]
        if use >= 0 and tape.slot[node, latest_before(tape, node, use)] == slot:
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
        return drop_repeat(tape, price, allowed)
    if kind < 75:
        return merge_first(tape) if free else drop_repeat(tape, price, allowed)
    if free and kind < 85:
        return drag(tape)
    return shift(tape)


@compiled_entry
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
