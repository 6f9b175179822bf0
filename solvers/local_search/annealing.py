"""Simulated annealing over search states; everything is compiled.

The objective of a search state is

    cost + penalty × violation.

The penalty rises while the state is over budget and falls while it is under. Where it is so high
that nothing moves any more, it starts again from low down: what is stuck gets loose, the rest
stays.

A schedule stays valid while its first computations stay in an order that the graph allows, so
recomputations may come and go. The moves:

    add     recompute a value just before a read of it, or while its inputs still live
    drop    remove a recomputation
    merge   remove a first computation that nobody reads; the second takes its place
    drag    move a computation far, with all that would have to follow, or to precede, it
    shift   move a computation between what it reads and what reads it

Method: Kirkpatrick et al. (1983); for this problem, "FastSA" (see the README).
"""

from __future__ import annotations

import math

from solvers.local_search import settings
from solvers.local_search.changes import keep_best, undo
from solvers.local_search.compilation import compiled, compiled_entry
from solvers.local_search.random_numbers import random_below, random_unit
from solvers.local_search.recomputations import (
    add_recomputation,
    drop_recomputation,
    merge_first,
)
from solvers.local_search.search_state import JOURNALED, VIOLATION, SearchState
from solvers.local_search.shifts import drag, shift

# Upper ends of the ranges of percents; a shift has the rest.
_ADD = settings.ADD_PERCENT
_DROP = _ADD + settings.DROP_PERCENT
_MERGE = _DROP + settings.MERGE_PERCENT
_DRAG = _MERGE + settings.DRAG_PERCENT


@compiled
def random_move(state: SearchState, is_free: bool, penalty: float, allowed: float) -> bool:
    """Make a random move; false if it was given up.

    Args:
        is_free: whether the order of first computations may change.
        allowed: by how much the objective may get worse.
    """
    percent = random_below(state, 100)
    if percent < _ADD:
        return add_recomputation(state, penalty, allowed)
    if percent < _DROP:
        return drop_recomputation(state, penalty, allowed)
    if percent < _MERGE:
        return merge_first(state) if is_free else drop_recomputation(state, penalty, allowed)
    if is_free and percent < _DRAG:
        return drag(state)
    return shift(state)


@compiled_entry
def anneal(
    state: SearchState,
    moves: int,
    hot: float,
    cold: float,
    penalty: float,
    highest_penalty: float,
    is_free: bool,
    limit: float,
) -> tuple[float, int]:
    """Make `moves` moves at temperatures from `hot` to `cold`.

    Returns:
        The penalty at the end, and the length of the schedule in `state.best`: the cheapest under
        budget that costs less than `limit`; 0 if there is none.
    """
    best = limit
    length = 0
    under = 0
    cooling = (cold / hot) ** (1.0 / max(1, moves))
    temperature = hot
    for number in range(moves):
        temperature *= cooling
        cost, violation = state.total_cost[0], state.totals[VIOLATION]
        state.totals[JOURNALED] = 0
        allowed = -temperature * math.log(1.0 - random_unit(state))
        if random_move(state, is_free, penalty, allowed):
            worse = state.total_cost[0] - cost + penalty * (state.totals[VIOLATION] - violation)
            if worse > allowed:
                undo(state)
        if state.totals[VIOLATION] == 0:
            under += 1
            if state.total_cost[0] < best * (1 - settings.ROUNDING):
                best = state.total_cost[0]
                length = keep_best(state)
        if number % settings.PENALTY_MOVES == settings.PENALTY_MOVES - 1:
            is_under = under > settings.UNDER_BUDGET_SHARE * settings.PENALTY_MOVES
            factor = settings.PENALTY_FACTOR
            penalty = penalty / factor if is_under else penalty * factor
            if penalty > highest_penalty:
                penalty = highest_penalty / settings.PENALTY_RANGE
            under = 0
    return penalty, length
