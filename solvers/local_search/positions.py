"""Where computations stand in a search state, and where they may; everything is compiled."""

from __future__ import annotations

from solvers.local_search import settings
from solvers.local_search.changes import latest_before
from solvers.local_search.compilation import compiled
from solvers.local_search.random_numbers import random_below
from solvers.local_search.search_state import VIOLATION, SearchState


@compiled
def random_computation(state: SearchState) -> int:
    """A position that is not empty."""
    while True:
        position = random_below(state, len(state.node_at))
        if state.node_at[position] >= 0:
            return position


@compiled
def nearest_empty(state: SearchState, position: int, low: int, high: int) -> int:
    """The empty position in (low, high) nearest to `position`, the lower of two; −1 if all are far.

    Far is `SEARCHED_POSITIONS` or more.
    """
    for distance in range(settings.SEARCHED_POSITIONS):
        below, above = position - distance, position + distance
        if low < below < high and state.node_at[below] < 0:
            return below
        if low < above < high and state.node_at[above] < 0:
            return above
    return -1


@compiled
def first_position(state: SearchState, node: int) -> int:
    """Position of the first computation."""
    return int(state.position[node, 0])


@compiled
def expiry(state: SearchState, node: int) -> int:
    """The position before which every computation of `node` must be."""
    limit = len(state.node_at)
    for link in range(state.expired_by.start[node], state.expired_by.start[node + 1]):
        limit = min(limit, first_position(state, state.expired_by.node[link]))
    return limit


@compiled
def earliest_allowed(state: SearchState, node: int, k: int) -> int:
    """The position after which computation k of `node` can stand, everything else unchanged."""
    position = state.position[node, k]
    low = state.position[node, k - 1] if k > 0 else -1
    for link in range(state.dependencies.start[node], state.dependencies.start[node + 1]):
        read = state.dependencies.node[link]
        low = max(low, state.position[read, latest_before(state, read, position)])
    if k == 0:
        for link in range(state.predecessors.start[node], state.predecessors.start[node + 1]):
            low = max(low, first_position(state, state.predecessors.node[link]))
        for link in range(state.expires.start[node], state.expires.start[node + 1]):
            expired = state.expires.node[link]
            low = max(low, state.position[expired, state.times_computed[expired] - 1])
    return low


@compiled
def latest_allowed(state: SearchState, node: int, k: int) -> int:
    """The position before which computation k of `node` can stand; the next one is ignored."""
    position = state.position[node, k]
    high = min(expiry(state, node), next_reader(state, node, position))
    if k == 0:
        for link in range(state.successors.start[node], state.successors.start[node + 1]):
            high = min(high, first_position(state, state.successors.node[link]))
    return high


@compiled
def next_reader(state: SearchState, node: int, position: int) -> int:
    """The first position after `position` that reads `node`, whichever computation it reads."""
    first = len(state.node_at)
    for link in range(state.users.start[node], state.users.start[node + 1]):
        user = state.users.node[link]
        k = latest_before(state, user, position + 1) + 1
        if k < state.times_computed[user]:
            first = min(first, state.position[user, k])
    return first


@compiled
def is_focused(state: SearchState) -> bool:
    """Whether a move aims at a position over budget; there may be few of them."""
    return state.totals[VIOLATION] > 0 and random_below(state, settings.FOCUSED_ONE_IN) == 0


@compiled
def position_over_budget(state: SearchState) -> int:
    """A random position that is over budget; there must be one."""
    block = random_below(state, len(state.block_max))
    while state.block_max[block] <= 0:
        block = (block + 1) % len(state.block_max)
    index = random_below(state, settings.BLOCK)
    while state.profile[block, index] + state.block_addend[block] <= 0:
        index = (index + 1) % settings.BLOCK
    return block * settings.BLOCK + index


@compiled
def retained_across(state: SearchState, position: int) -> int:
    """A random node whose value lives from before `position` to after it; −1 if none is found."""
    for _ in range(settings.RETAINED_TRIES):
        node = random_below(state, len(state.times_computed))
        k = latest_before(state, node, position)
        if k >= 0 and state.last_read[node, k] > position:
            return node
    return -1
