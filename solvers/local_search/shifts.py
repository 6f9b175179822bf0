"""Moves that change when computations run; everything is compiled.

A shift moves one computation between what it reads and what reads it. A drag moves one beyond
that: those that would have to follow it, or to precede it, come along.
"""

from __future__ import annotations

import math

from solvers.local_search.changes import insert, latest_before, remove
from solvers.local_search.compilation import compiled, inlined
from solvers.local_search.positions import (
    earliest_allowed,
    first_position,
    is_focused,
    latest_allowed,
    nearest_empty,
    position_over_budget,
    random_computation,
    retained_across,
)
from solvers.local_search.random_numbers import random_below, random_unit
from solvers.local_search.search_state import SearchState
from solvers.local_search.settings import MOST_DRAGGED, SHORTEST_DRAG_LOG2


@compiled
def shift(state: SearchState) -> bool:
    """Move one computation to another position between what it reads and what reads it."""
    position = random_computation(state)
    node = state.node_at[position]
    k = latest_before(state, node, position + 1)
    low, high = earliest_allowed(state, node, k), latest_allowed(state, node, k)
    if k + 1 < state.times_computed[node]:
        high = min(high, state.position[node, k + 1])
    if high - low <= 2:
        return False
    where = random_below(state, 4)
    if where == 0:
        target = low + 1
    elif where == 1:
        target = high - 1
    else:
        target = low + 1 + random_below(state, high - low - 1)
    target = nearest_empty(state, target, low, high)
    if target < 0:
        return False
    remove(state, node, position)
    insert(state, node, target)
    return True


@compiled
def drag(state: SearchState) -> bool:
    """Move a computation far, with all that has to stay behind, or ahead of, it."""
    start = random_computation(state)
    step = 1 if random_below(state, 2) == 0 else -1
    reach = random_reach(state)
    if is_focused(state):
        over = position_over_budget(state)
        node = retained_across(state, over)
        if node < 0:
            return False
        k = latest_before(state, node, over)
        start = state.position[node, k] if step > 0 else state.last_read[node, k]
        reach += abs(over - start)
    most = int(2.0 ** (random_unit(state) * math.log2(MOST_DRAGGED + 0.5)))
    count, last = collect_dragged(state, start, step, reach, most)
    move_dragged(state, count, last, step)
    return True


@inlined
def random_reach(state: SearchState) -> int:
    """Over how many positions to drag, up to half of all; short drags are as likely as long."""
    longest_log2 = math.log2(len(state.node_at)) - 1.0
    spread = longest_log2 - SHORTEST_DRAG_LOG2
    return int(2.0 ** (SHORTEST_DRAG_LOG2 + random_unit(state) * spread))


@inlined
def collect_dragged(
    state: SearchState, start: int, step: int, reach: int, most: int
) -> tuple[int, int]:
    """Go from `start` in steps of 1 or −1, and list in `state.dragged` what has to come along.

    Returns:
        The length of the list, and the last position gone to: it ends after `reach` steps, at an
        end of the state, before a further computation of a node in the list, and before one that
        would be more than `most`.
    """
    dragged, mark = state.dragged, state.mark
    dragged[0, 1] = start
    dragged[0, 0] = state.node_at[start]
    mark[dragged[0, 0]] = start
    count = 1
    last = start
    for _ in range(reach):
        position = last + step
        if position < 0 or position >= len(state.node_at):
            break
        node = state.node_at[position]
        if node >= 0:
            is_bound = must_follow(state, position) if step > 0 else must_precede(state, position)
            if is_bound and (count == most or mark[node] >= 0):
                break
            if is_bound:
                mark[node] = position
                dragged[count, 0], dragged[count, 1] = node, position
                count += 1
        last = position
    for entry in range(count):
        mark[dragged[entry, 0]] = -1
    return count, last


@compiled
def must_follow(state: SearchState, position: int) -> bool:
    """Whether the computation at `position` has to stay behind a marked one before it."""
    node = state.node_at[position]
    if state.mark[node] >= 0:
        return True
    for link in range(state.dependencies.start[node], state.dependencies.start[node + 1]):
        read = state.dependencies.node[link]
        marked = state.mark[read]
        if marked >= 0 and state.position[read, latest_before(state, read, position)] == marked:
            return True
    if first_position(state, node) != position:
        return False
    for link in range(state.predecessors.start[node], state.predecessors.start[node + 1]):
        other = state.predecessors.node[link]
        marked = state.mark[other]
        if marked >= 0 and first_position(state, other) == marked:
            return True
    for link in range(state.expires.start[node], state.expires.start[node + 1]):
        if state.mark[state.expires.node[link]] >= 0:
            return True
    return False


@compiled
def must_precede(state: SearchState, position: int) -> bool:
    """Whether the computation at `position` has to stay ahead of a marked one after it."""
    node = state.node_at[position]
    if state.mark[node] >= 0:
        return True
    for link in range(state.users.start[node], state.users.start[node + 1]):
        use = state.mark[state.users.node[link]]
        if use >= 0 and state.position[node, latest_before(state, node, use)] == position:
            return True
    for link in range(state.expired_by.start[node], state.expired_by.start[node + 1]):
        other = state.expired_by.node[link]
        if state.mark[other] == first_position(state, other):
            return True
    if first_position(state, node) != position:
        return False
    for link in range(state.successors.start[node], state.successors.start[node + 1]):
        other = state.successors.node[link]
        if state.mark[other] == first_position(state, other):
            return True
    return False


@compiled
def move_dragged(state: SearchState, count: int, last: int, step: int) -> None:
    """Put the computations in `state.dragged`, in their order, at the positions up to `last`."""
    for entry in range(count):
        remove(state, state.dragged[entry, 0], state.dragged[entry, 1])
    position = last
    for entry in range(count - 1, -1, -1):
        while state.node_at[position] >= 0:
            position -= step
        insert(state, state.dragged[entry, 0], position)
        position -= step
