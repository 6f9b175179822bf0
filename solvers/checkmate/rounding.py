"""The LP relaxation of equation (9): a lower bound, and schedules rounded from it (section 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from solvers.checkmate.formulation import OutOfTimeError, build_frontier, fits_in_memory
from solvers.checkmate.milp import EXPRESSIBLE, RULES_SECONDS, RULES_SHARE
from solvers.checkmate.repair import repair
from solvers.checkpointing.incumbent import BY_RULE, Best, Incumbent
from solvers.cutting_planes.fixed_order import solve_cutting_planes
from solvers.errors import SolverError
from solvers.graph import BoolMatrix, Schedule, input_order_peak, simulate
from solvers.graph.matrices import least_recomputation
from solvers.problem import Problem, Solution, answer
from solvers.programs.linear_program import Vector
from solvers.programs.optimize import optimize

_EPSILONS = (0.1, 0.0, 0.05, 0.2, 0.3)
"""Shares of the budget that the LP does not get; the paper's first."""

_THRESHOLDS = (0.5, 0.3, 0.7, 0.1, 0.9, 0.2, 0.4, 0.6, 0.8, 0.01, 0.99)
"""Values of S* above which S is 1; the paper's first."""

_SAMPLES = 20
"""Random roundings of each S*."""

_LP_SHARE = 0.5
"""Share of the time that the LP gets before another bound is asked for."""


@dataclass(frozen=True)
class LpOptimum:
    """The optimum of the LP relaxation: S* of shape (n, n), and the bound as a cost.

    Either is None where it is not known.
    """

    S: Vector | None
    bound: float | None


def relax(problem: Problem, epsilon: float = 0.0, incumbent: Incumbent | None = None) -> LpOptimum:
    """Solve the LP relaxation of (9) with (1 − ε) of the memory; `incumbent` works meanwhile.

    The bound is proved by the multipliers of the LP, so it contains no tolerance of the backend. It
    holds for `problem` if ε = 0.
    """
    if not fits_in_memory(problem.graph):
        return LpOptimum(None, None)
    memory = (1 - epsilon) * problem.activation_budget
    try:
        program = build_frontier(problem.graph, memory, deadline=problem.deadline)
    except OutOfTimeError:
        return LpOptimum(None, None)

    def wait() -> None:
        if incumbent is not None:
            incumbent.work(RULES_SECONDS)
        problem.report(None, None, f"LP relaxation, ε = {epsilon}")

    result = optimize(problem, program.model.relaxed(), while_waiting=wait)
    S = None if result.values is None else program.matrices(result.values)[1]
    return LpOptimum(S, program.lower_bound(result.bound))


def solve_lp_bound(problem: Problem) -> Solution:
    """The optimum of the LP relaxation of (9) as a lower bound; no schedule.

    Where the LP takes more than half of the time, the bound of `cutting_planes` is given instead.
    """
    graph, name = problem.graph, "lp_bound"
    if input_order_peak(graph) <= problem.budget:
        return answer(problem, name, None, bound=graph.one_pass_cost, note="a bound only")
    if problem.is_hopeless:
        return answer(problem, name, None)
    optimum = relax(replace(problem, time_limit=_LP_SHARE * problem.time_limit))
    if optimum.S is not None:
        return answer(
            problem, name, None, bound=optimum.bound, among=EXPRESSIBLE, note="a bound only"
        )
    bound = solve_cutting_planes(replace(problem, options={})).bound
    note = "a bound only; the LP took too long, this one is of cutting_planes"
    return answer(problem, name, None, bound=bound, note=note)


def solve_lp_rounding(problem: Problem) -> Solution:
    """Two-phase rounding of the LP relaxation: S rounded from S*, then the least R for it.

    The cheapest over several ε and thresholds, each schedule repaired where it is over budget.
    Options: `rounding`, "deterministic" (S = 1 where S* exceeds the threshold), "randomized"
    (Bernoulli(S*), seeded) or "both"; `epsilons` and `thresholds` to search; `repair=False` for
    rounding as published. Where nothing is rounded in time, the answer is that of the simple rules.

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
    try:
        incumbent.work(RULES_SHARE * problem.seconds_left)
        bound = relax(problem, incumbent=incumbent).bound
        for schedule in _rounded_schedules(problem, incumbent, random):
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
    problem: Problem, incumbent: Incumbent, random: np.random.Generator
) -> Iterator[Schedule | None]:
    """Of every rounding for every ε, until the time is up."""
    for epsilon in problem.options.get("epsilons", _EPSILONS):
        if problem.seconds_left == 0:
            return
        S = relax(problem, epsilon, incumbent).S
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
