"""Moves that add and drop recomputations; everything is compiled.

A move first works out what it can of its effect on the objective, and is given up where that is
worse than now by more than `allowed`. Most are, so this is where the speed comes from.
"""

from __future__ import annotations

from solvers.local_search import settings
from solvers.local_search.changes import insert, last_reader, latest_before, remove
from solvers.local_search.compilation import compiled, inlined
from solvers.local_search.memory_profile import violation_change
from solvers.local_search.positions import (
    expiry,
    is_focused,
    latest_allowed,
    nearest_empty,
    next_reader,
    position_over_budget,
    random_computation,
    retained_across,
)
from solvers.local_search.random_numbers import random_below
from solvers.local_search.search_state import COMPUTATIONS, JOURNALED, RECOMPUTED, SearchState


@compiled
def add_recomputation(state: SearchState, penalty: float, allowed: float) -> bool:
    """Recompute a value before a read of it, and with it maybe some of its inputs."""
    if state.totals[COMPUTATIONS] > settings.MOST_FILLED * len(state.node_at):
        return False
    node, use = retained_over_budget(state) if is_focused(state) else random_use(state)
    if node < 0 or not may_recompute(state, node):
        return False
    k = latest_before(state, node, use)
    computed = state.position[node, k]
    last = last_reader(state, node, computed, use)
    freed = -violation_change(state, last + 1, use - 1, -state.memory[node])
    if freed == 0 and random_below(state, settings.FREES_NOTHING_ONE_IN) > 0:
        return False
    # An older recomputation that loses its only reader goes, and what only it had read: nobody
    # knows in advance what that saves.
    is_cost_known = k == 0 or last != computed
    most_cost = state.total_cost[0] + allowed + penalty * freed
    return recompute_with_inputs(state, node, use, penalty, most_cost, is_cost_known)


@inlined
def recompute_with_inputs(
    state: SearchState, node: int, use: int, penalty: float, most_cost: float, is_cost_known: bool
) -> bool:
    """Recompute `node` before the position `use`, then the inputs chosen, theirs, and so on.

    Args:
        most_cost: the total cost beyond which it is given up.
        is_cost_known: whether that holds for the first computation, too.
    """
    to_recompute = state.to_recompute
    to_recompute[0, 0], to_recompute[0, 1] = node, use
    count = 1
    memory = state.memory[node]
    any_added = False
    while count > 0:
        count -= 1
        node, before = to_recompute[count, 0], to_recompute[count, 1]
        if not may_recompute(state, node):
            continue
        k = latest_before(state, node, before)
        position = nearest_empty(state, before - 1, state.position[node, k], before)
        if position < 0 or position > expiry(state, node):
            continue
        freed = 0 if any_added else memory
        count, most_cost = choose_inputs(
            state, node, position, freed, penalty, most_cost, is_cost_known, count
        )
        if is_cost_known and state.total_cost[0] + state.cost[node] > most_cost:
            break
        insert(state, node, position)
        drop_useless(state, node, k)
        any_added = is_cost_known = True
    return any_added


@inlined
def choose_inputs(
    state: SearchState,
    node: int,
    position: int,
    freed: int,
    penalty: float,
    most_cost: float,
    is_cost_known: bool,
    count: int,
) -> tuple[int, float]:
    """Decide which inputs that are gone at `position` are recomputed; the others are retained.

    Args:
        freed: memory that the recomputation frees at these positions.
        count: length of the list `state.to_recompute`, to which inputs are added.

    Returns:
        The new length, and `most_cost` less the penalty of what is retained.
    """
    for link in range(state.dependencies.start[node], state.dependencies.start[node + 1]):
        if is_cost_known and state.total_cost[0] + state.cost[node] > most_cost:
            break
        read = state.dependencies.node[link]
        if state.memory[read] == 0 or count >= settings.MOST_DRAGGED:
            continue
        last = state.last_read[read, latest_before(state, read, position)]
        if last >= position:
            continue
        retaining = penalty * violation_change(
            state, last + 1, position, state.memory[read], -freed
        )
        if is_input_recomputed(state, read, retaining):
            state.to_recompute[count, 0], state.to_recompute[count, 1] = read, position
            count += 1
        else:
            most_cost -= retaining
    return count, most_cost


@inlined
def is_input_recomputed(state: SearchState, read: int, retaining: float) -> bool:
    """Whether an input is recomputed rather than retained, which would add `retaining`.

    Always taking what is cheaper makes recomputations grow without end where memory is short.
    """
    if random_below(state, settings.INPUT_ONE_IN) == 0:
        return True
    is_dear = retaining > settings.DEAR_INPUT * state.cost[read]
    return is_dear and random_below(state, settings.DEAR_INPUT_ONE_IN) == 0


@compiled
def may_recompute(state: SearchState, node: int) -> bool:
    """Whether another computation of `node` is allowed and can be of use."""
    has_room = state.times_computed[node] < state.position.shape[1]
    has_room = has_room and state.totals[JOURNALED] < settings.MOST_DRAGGED
    return bool(has_room and state.recomputable[node] and state.memory[node] > 0)


@compiled
def random_use(state: SearchState) -> tuple[int, int]:
    """A node, and a position before which to recompute it for a later read; −1 if there is none."""
    use = random_computation(state)
    user = state.node_at[use]
    inputs = state.dependencies.start[user + 1] - state.dependencies.start[user]
    if inputs == 0:
        return -1, use
    link = state.dependencies.start[user] + random_below(state, inputs)
    node = state.dependencies.node[link]
    if random_below(state, settings.EARLY_ONE_IN) == 0:
        computed = state.position[node, latest_before(state, node, use)]
        use = while_inputs_live(state, node, last_reader(state, node, computed, use), use)
    return int(node), use


@compiled
def retained_over_budget(state: SearchState) -> tuple[int, int]:
    """The same for a value that is retained across a position over budget."""
    position = position_over_budget(state)
    node = retained_across(state, position)
    if node < 0:
        return -1, position
    use = next_reader(state, node, position)
    if random_below(state, settings.EARLY_OVER_BUDGET_ONE_IN) == 0:
        use = while_inputs_live(state, node, position, use)
    return node, use


@compiled
def while_inputs_live(state: SearchState, node: int, after: int, use: int) -> int:
    """The last position up to `use` at which all inputs live that live beyond `after`."""
    last = use
    for link in range(state.dependencies.start[node], state.dependencies.start[node + 1]):
        read = state.dependencies.node[link]
        if state.memory[read] == 0:
            continue
        end = state.last_read[read, latest_before(state, read, after)]
        if end > after + 1:
            last = min(last, end)
    return int(last)


@compiled
def drop_recomputation(state: SearchState, penalty: float, allowed: float) -> bool:
    """Remove a recomputation and what only it had read."""
    if state.totals[RECOMPUTED] == 0:
        return False
    node = state.recomputed[random_below(state, state.totals[RECOMPUTED])]
    k = 1 + random_below(state, state.times_computed[node] - 1)
    position = state.position[node, k]
    if is_worth_keeping(state, node, k, penalty, allowed):
        return False
    remove(state, node, position)
    drop_inputs(state, node, position)
    return True


@inlined
def is_worth_keeping(state: SearchState, node: int, k: int, penalty: float, allowed: float) -> bool:
    """Whether dropping recomputation k of `node` is worse by more than `allowed` for sure.

    Dropped, its cost is saved, its inputs end earlier, and the value before it is retained.
    """
    position, memory = state.position[node, k], state.memory[node]
    if state.last_read[node, k] == position:
        return False
    retained_from = state.last_read[node, k - 1] + 1
    worse = penalty * violation_change(state, retained_from, position - 1, memory)
    worse -= state.cost[node]
    for link in range(state.dependencies.start[node], state.dependencies.start[node + 1]):
        if worse <= allowed:
            break
        read = state.dependencies.node[link]
        j = latest_before(state, read, position)
        if state.last_read[read, j] != position:
            continue
        last = last_reader(state, read, state.position[read, j], position)
        if j > 0 and last == state.position[read, j]:
            return False  # it goes, too, and nobody knows in advance what that saves
        worse += penalty * violation_change(state, last + 1, position, -state.memory[read], memory)
    return bool(worse > allowed)


@compiled
def merge_first(state: SearchState) -> bool:
    """Drop a first computation that nobody reads: the second one becomes the first."""
    if state.totals[RECOMPUTED] == 0:
        return False
    node = state.recomputed[random_below(state, state.totals[RECOMPUTED])]
    position = state.position[node, 0]
    is_read = state.last_read[node, 0] != position
    if is_read or latest_allowed(state, node, 0) < state.position[node, 1]:
        return False
    remove(state, node, position)
    return True


@compiled
def drop_useless(state: SearchState, node: int, k: int) -> None:
    """Remove recomputation k of `node` if nobody reads it, and then what only it had read."""
    if k <= 0 or state.memory[node] == 0 or state.last_read[node, k] != state.position[node, k]:
        return
    position = state.position[node, k]
    remove(state, node, position)
    drop_inputs(state, node, position)


@compiled
def drop_inputs(state: SearchState, node: int, position: int) -> None:
    """A recomputation of `node` at `position` is gone: drop recomputations that only it read."""
    to_drop = state.to_drop
    to_drop[0, 0], to_drop[0, 1] = node, position
    count = 1
    while count > 0:
        count -= 1
        node, position = to_drop[count, 0], to_drop[count, 1]
        for link in range(state.dependencies.start[node], state.dependencies.start[node + 1]):
            read = state.dependencies.node[link]
            if state.memory[read] == 0:
                continue
            has_room = state.totals[JOURNALED] + settings.MOST_DRAGGED <= len(state.journal)
            if count == len(to_drop) or not has_room:
                break
            k = latest_before(state, read, position)
            if k > 0 and state.last_read[read, k] == state.position[read, k]:
                computed = state.position[read, k]
                remove(state, read, computed)
                to_drop[count, 0], to_drop[count, 1] = read, computed
                count += 1
