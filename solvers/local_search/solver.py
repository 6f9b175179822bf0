"""The solver `search`: local search for cheap schedules under a budget, in fixed or free order."""

from __future__ import annotations

import time

import numpy as np

from solvers.checkpointing.incumbent import Incumbent
from solvers.graph import ComputationGraph, Schedule
from solvers.local_search import settings
from solvers.local_search.chain import compile_kernels
from solvers.local_search.least_memory import least_memory_found
from solvers.local_search.search import Search, Start, moves_per_round, starts_of
from solvers.problem import Problem, Solution, answer


def solve_search(problem: Problem) -> Solution:
    """Local search until the time limit, or until it no longer helps.

    It computes a node at most 20 times. Long chains need more where the budget is near the
    least possible, so heuristics, which have no such limit, are asked as well.

    Option: `starts`, as of `auto`.
    """
    graph = problem.graph
    deadline = problem.deadline + compile_kernels()
    if problem.is_hopeless:
        return answer(problem, "search", None)
    heuristics = Incumbent(problem)
    heuristics.work(settings.HEURISTICS_SHARE * problem.time_limit)
    search = Search(graph, problem.budget, problem.order, problem.seed)
    bound = graph.one_pass_cost
    least: int | None = None
    try:
        for start in [*starts_of(graph, problem.order), *problem.options.get("starts", ())]:
            search.offer(start)
        _improve(search, problem, deadline)
        if heuristics.schedule is not None:
            search.offer(heuristics.schedule)
        if search.schedule is None:
            least = least_memory_found(
                graph, problem.order, deadline, problem.seed, search.leanest
            )[1]
    except KeyboardInterrupt:
        pass
    return answer(
        problem,
        "search",
        search.schedule,
        bound=bound,
        bound_order="free",
        proved=search.cost <= bound * (1 + settings.ROUNDING),
        least_budget=least,
        note=limit_note(graph, search.schedule),
        statistics={"rounds": search.rounds, "moves per second": round(search.speed)},
    )


def _improve(search: Search, problem: Problem, deadline: float) -> None:
    """Run rounds until `deadline`, a cost of one pass, or `PATIENCE` rounds without a better one.

    The first round starts hot, from schedules without recomputation. In later rounds one chain
    starts that way again, and the others start warm, from the incumbent. While nothing is under
    budget, the rest of the time goes to finding the least memory.
    """
    graph, bound = problem.graph, problem.graph.one_pass_cost
    plain = starts_of(graph, problem.order)
    count = len(search.chains)
    enough = bound * (1 + settings.ROUNDING)
    idle = 0
    while idle < settings.PATIENCE and search.cost > enough:
        reserve = settings.LEAST_MEMORY_SHARE * problem.time_limit if not search.schedule else 0.0
        if time.monotonic() >= deadline - reserve:
            break
        before = search.cost
        turns = range(search.rounds, search.rounds + count)
        starts = [Start(plain[turn % len(plain)], settings.HOT) for turn in turns]
        if search.schedule is not None and search.fits(search.schedule):
            for i in range(search.rounds % 2, count) if count == 1 else range(1, count):
                starts[i] = Start(search.schedule, settings.WARM)
        search.round(
            starts,
            moves_per_round(graph),
            deadline - reserve,
            enough,
            lambda: problem.report(search.cost, bound, "search"),
        )
        idle = 0 if search.cost < before * (1 - settings.IMPROVEMENT) else idle + 1


def limit_note(graph: ComputationGraph, schedule: Schedule | None) -> str:
    """What to say where a schedule reaches the most computations of one node, or there is none."""
    most = settings.MOST_COMPUTATIONS
    if not len(graph) or (schedule is not None and np.bincount(schedule.steps).max() < most):
        return ""
    what = "none was found" if schedule is None else "it may be better without that limit"
    return f"the search computes a node at most {most} times; {what}"
