"""The solver `auto`: rounds of the search and passes of the cutting planes, side by side."""

from __future__ import annotations

import time

from solvers.checkpointing.incumbent import Incumbent
from solvers.checkpointing.trimming import trimmed
from solvers.local_search.least_memory import least_memory_found
from solvers.local_search.search import Search
from solvers.local_search.settings import HEURISTICS_SHARE
from solvers.local_search.solver import limit_note
from solvers.portfolio import settings
from solvers.portfolio.passes import Passes
from solvers.portfolio.rounds import Rounds
from solvers.problem import Problem, Solution, answer


def solve_auto(problem: Problem) -> Solution:
    """The best schedule found within the time limit; see the module.

    The search computes a node at most 20 times. Long chains need more where the budget is near the
    least possible, so heuristics, which have no such limit, are asked as well.

    Options: `backend`, the MILP solver; `starts`, known schedules to begin with, in the input order
    if the question is about that order. The answer is never dearer than a start under budget.

    Raises:
        SolverError: the backend is missing or fails.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> solve_auto(Problem(unit_chain(8), 10)).cost  # nothing is computed twice
        17.0
    """
    graph = problem.graph
    if problem.is_hopeless:
        return answer(problem, "auto", None)
    heuristics = Incumbent(problem)
    seconds = HEURISTICS_SHARE * problem.time_limit
    heuristics.work(seconds)
    search = Search(graph, problem.budget, problem.order, problem.seed)
    passes = Passes(problem, search)
    least: int | None = None
    try:
        rounds = Rounds(passes)
        try:
            _run(passes, rounds)
        finally:
            passes.end()
        if heuristics.schedule is not None and heuristics.cost < search.cost:
            end = min(time.monotonic() + seconds, problem.deadline)
            search.offer(trimmed(graph, heuristics.schedule, problem.budget, end))
        if search.schedule is None:
            leanest, least = least_memory_found(
                graph, problem.order, rounds.deadline, problem.seed, search.leanest
            )
            search.offer(leanest)  # it may be under budget
    except KeyboardInterrupt:
        pass
    bound, bound_order = passes.bound_of_answer()
    has_proof = passes.infeasible or passes.is_proved
    return answer(
        problem,
        "auto",
        search.schedule,
        bound=bound,
        bound_order=bound_order,
        proved=passes.is_proved,
        infeasible=passes.infeasible,
        least_budget=least,
        note="" if has_proof else limit_note(graph, search.schedule),
        statistics={
            "rounds": search.rounds,
            "bound for this order": passes.bound_for(search.schedule),
        },
    )


def _run(passes: Passes, rounds: Rounds) -> None:
    """Search and relax until the time is over, or nothing more is to be gained."""
    search, problem = passes.search, passes.problem
    while not passes.infeasible and search.cost > passes.enough:
        if time.monotonic() >= rounds.search_deadline:
            return
        passes.begin(rounds.deadline)
        may_search = passes.is_free or problem.seconds > settings.HEAD_START
        if rounds.may_gain and (may_search or passes.running is None):
            rounds.round()
        elif passes.is_busy:
            passes.wait(settings.LOOK)
        else:
            return
        if passes.absorb():
            passes.report("cutting planes")
