"""The portfolio's search: one round at a time, from what the passes and the search have found."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from solvers.graph import Schedule
from solvers.local_search.chain import compile_kernels
from solvers.local_search.least_memory import least_memory_found
from solvers.local_search.search import Start, moves_per_round
from solvers.local_search.settings import (
    HOT,
    WARM,
)
from solvers.portfolio.settings import (
    CLOSE_ENOUGH,
    FIRST_ADVANCE,
    FIRST_SHARE,
    LOWER_BY,
    LOWER_ONE_IN,
    ROUND_SHARE,
    WORTH,
)
from solvers.portfolio.state import Run, State, enough, report, search_deadline


def searched(run: Run, state: State) -> State:
    """After one round of the search."""
    state = replace(state, deadline=state.deadline + compile_kernels())
    search, time_limit = run.search, run.problem.time_limit
    cost_before, peak_before = search.cost, search.least_peak
    takes_proposal = _takes_proposal(run, state)
    starts = _starts(run, state, state.proposal if takes_proposal else None)
    share = FIRST_SHARE if search.schedule is None else ROUND_SHARE
    search.round(
        starts,
        moves_per_round(run.problem.graph),
        min(search_deadline(run, state), time.monotonic() + share * time_limit),
        enough(run, state.bounds),
        lambda *_: report(run, state.bounds, "search"),
    )
    has_intermediate = any(start.budget is not None for start in starts)
    has_missed = has_intermediate and search.least_peak >= peak_before
    is_worthwhile = math.isinf(cost_before) or search.cost < cost_before - WORTH * cost_before
    return replace(
        state,
        proposal=None if takes_proposal else state.proposal,
        idle_rounds=0 if is_worthwhile else state.idle_rounds + 1,
        advance=state.advance / 2 if has_missed else FIRST_ADVANCE,
    )


def _free_chains(run: Run, state: State) -> int:
    """Chains for which there is a processor."""
    is_busy = state.running is not None or state.bounding is not None
    return len(run.search.chains) - is_busy


def _takes_proposal(run: Run, state: State) -> bool:
    """Whether this round may start from a proposal: a lone chain takes turns."""
    is_lone = _free_chains(run, state) <= 1
    return not is_lone or run.search.schedule is None or run.search.rounds % 2 == 0


def _starts(run: Run, state: State, proposal: Schedule | None) -> list[Start]:
    """Where the chains begin: the proposal, the incumbent, and the plain orders."""
    search, turn = run.search, run.search.rounds
    known = search.schedule or search.leanest
    starts = [] if proposal is None else [Start(proposal, WARM)]
    for i in range(len(starts), max(1, _free_chains(run, state))):
        if known is not None and (i + turn) % 2 and search.fits(known):
            starts.append(Start(known, WARM, _intermediate_budget(run, state)))
        else:
            starts.append(
                Start(run.plain[(i + turn // 2) % len(run.plain)], HOT, _lower_budget(run))
            )
    return starts


def _intermediate_budget(run: Run, state: State) -> int | None:
    """While nothing is under budget: a budget on the way there from the least peak, in bytes."""
    budget, least = run.problem.budget, run.search.least_peak
    if least <= budget * (1 + CLOSE_ENOUGH):
        return _lower_budget(run)
    return int(least - state.advance * (least - budget))


def _lower_budget(run: Run) -> int | None:
    """In some rounds while little is missing: a budget for which more is missing, in bytes.

    Peaks come in steps, as large as values are. Where one lies a few bytes above the budget, that
    is too small a violation for chains to give up a cheap schedule.
    """
    budget, least = run.problem.budget, run.search.least_peak
    is_close = budget < least <= budget * (1 + CLOSE_ENOUGH)
    is_turn = run.search.rounds % LOWER_ONE_IN == LOWER_ONE_IN - 1
    return int(budget * (1 - LOWER_BY)) if is_close and is_turn else None


def least_memory(run: Run, deadline: float) -> int:
    """The least peak found in the time that is left; its schedule may be under budget."""
    problem, search = run.problem, run.search
    schedule, peak = least_memory_found(
        problem.graph, problem.order, deadline, problem.seed, search.leanest
    )
    search.offer(schedule)
    return peak
