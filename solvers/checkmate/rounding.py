"""Two-phase rounding: schedules from the LP relaxation of equation (9) (section 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from solvers.checkmate.lp_relaxation import LpOptimum, relax
from solvers.checkmate.milp import EXPRESSIBLE, RULES_SECONDS, RULES_SHARE
from solvers.checkmate.repair import repair
from solvers.checkpointing.incumbent import BY_RULE, Best, Incumbent
from solvers.errors import SolverError
from solvers.graph import BoolMatrix, Schedule, input_order_peak, simulate
from solvers.graph.matrices import least_recomputation
from solvers.problem import Problem, Solution, answer
from solvers.programs.linear_program import Vector

_EPSILONS = (0.1, 0.0, 0.05, 0.2, 0.3)
"""Shares of the budget that the LP does not get; the paper's first."""

_THRESHOLDS = (0.5, 0.3, 0.7, 0.1, 0.9, 0.2, 0.4, 0.6, 0.8, 0.01, 0.99)
"""Values of S* above which S is 1; the paper's first."""

_SAMPLES = 20
"""Random roundings of each S*."""


def solve_lp_rounding(problem: Problem) -> Solution:
    """Two-phase rounding of the LP relaxation: S rounded from S*, then the least R for it.

    The cheapest over several ε and thresholds, each schedule repaired where it is over budget.
    Options: `rounding`, "deterministic" (S = 1 where S* exceeds the threshold), "randomized"
    (Bernoulli(S*), seeded) or "both"; `epsilons` and `thresholds` to search; `tight=False` and
    `repair=False` for the relaxation and the rounding as published. Where nothing is rounded in
    time, the answer is that of the simple rules.

    Raises:
        SolverError: no such rounding, or the backend is missing.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> solve_lp_rounding(Problem(unit_chain(8), 9)).cost
        18.0
    """
    graph, name = problem.graph, "lp_rounding"
    if input_order_peak(graph) <= problem.budget:
        return answer(problem, name, Schedule(range(len(graph))), bound=graph.one_pass_cost)
    if problem.is_hopeless:
        return answer(problem, name, None)
    random = np.random.default_rng(problem.seed)
    incumbent = Incumbent(problem)
    bound: float | None = None
    best = Best(graph, problem.budget)
    tried = 0

    def work() -> None:
        incumbent.work(RULES_SECONDS)

    try:
        incumbent.work(RULES_SHARE * problem.seconds_left)
        optimum = relax(problem, while_waiting=work)
        bound = optimum.bound
        for schedule in _rounded_schedules(problem, optimum, random, work):
            tried += 1
            if best.offer(schedule):
                problem.report(best.cost, bound, "rounding")
    except KeyboardInterrupt:
        pass
    may_repair = problem.options.get("repair", True)
    by_rule = best.schedule is None and may_repair and bool(incumbent.schedule)
    chosen = incumbent.schedule if by_rule else best.schedule
    if chosen is not None and bound is not None:
        bound = min(bound, simulate(graph, chosen).cost)  # it may be one that (9) cannot express
    return answer(
        problem,
        name,
        chosen,
        bound=bound,
        among=EXPRESSIBLE,
        least_budget=best.least_budget,
        note=f"nothing was rounded in time; {BY_RULE}" if by_rule else "",
        statistics={"roundings": tried},
    )


def _rounded_schedules(
    problem: Problem,
    whole: LpOptimum,
    random: np.random.Generator,
    while_waiting: Callable[[], None],
) -> Iterator[Schedule | None]:
    """Of every rounding for every ε, until the time is up; `whole` is the optimum for ε = 0."""
    for epsilon in problem.options.get("epsilons", _EPSILONS):
        if problem.seconds_left == 0:
            return
        S = (relax(problem, epsilon, whole.watched, while_waiting) if epsilon else whole).S
        for rounded in () if S is None else _roundings(problem, S, random):
            yield _complete(problem, rounded)
            if problem.seconds_left == 0:
                return


def _complete(problem: Problem, S: BoolMatrix) -> Schedule | None:
    """The schedule with the least R for S, repaired if need be."""
    graph = problem.graph
    schedule = Schedule.from_matrices(graph, *least_recomputation(graph, S))
    if not problem.options.get("repair", True):
        return schedule
    return repair(graph, schedule, problem.budget)


def _roundings(problem: Problem, S: Vector, random: np.random.Generator) -> Iterable[BoolMatrix]:
    """The S matrices, each different, that are rounded from S*."""
    rounding = problem.options.get("rounding", "both")
    if rounding not in ("deterministic", "randomized", "both"):
        raise SolverError(
            "option-invalid", f"rounding {rounding!r} is not deterministic, randomized or both"
        )
    candidates: list[BoolMatrix] = []
    if rounding != "randomized":
        thresholds = problem.options.get("thresholds", _THRESHOLDS)
        candidates += [threshold < S for threshold in thresholds]
    if rounding != "deterministic":
        candidates += [random.random(S.shape) < S for _ in range(_SAMPLES)]
    return {candidate.tobytes(): candidate for candidate in candidates}.values()
