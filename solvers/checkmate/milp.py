"""The paper's exact method: the frontier-advancing MILP (9), and the unpartitioned form (1)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

from solvers.checkmate.formulation import (
    FrontierProgram,
    OutOfTimeError,
    build_frontier,
    build_unpartitioned,
    fits_in_memory,
)
from solvers.checkpointing.incumbent import BY_RULE, Incumbent, by_rule
from solvers.graph import ComputationGraph, Schedule, input_order_peak, simulate
from solvers.problem import PROVED, Order, Problem, Solution, Status, answer
from solvers.programs.optimize import optimize

Build = Callable[[ComputationGraph, float], FrontierProgram]
"""From a graph and the memory for its activations to the program."""

_ATTEMPTS = 4
"""Programs that are solved at most, each with less memory than the one before."""

_ROUNDING = 1e-6
"""Share of the budget by which what a backend lets pass may be above it."""

RULES_SHARE = 1 / 3
"""The most of the time that simple rules get before the program is built; it starts from their
best."""

RULES_SECONDS = 0.4
"""Seconds for more of them each time that the backend is looked at."""

EXPRESSIBLE = "schedules that compute no node twice in a stage"
"""What equations (1) and (9) optimize over. A few graphs have a cheaper one that is not."""

_NO_SOLUTION = (
    "the program has no solution; only a schedule that computes a node twice within a stage, "
    "which it cannot express, may still fit: try cutting_planes"
)


def solve_milp(problem: Problem) -> Solution:
    """The optimum of equation (9), in the graph's own order.

    That is the optimum among the schedules that (9) can express: stage t ends with the first
    computation of node t and computes each other node at most once, in input order. Optimum and
    bound hold for these, as the answer's `among` says.

    If (9) has no solution, that is no proof that nothing fits: computing a node twice in a stage
    may save the memory that is missing. The solver `cutting_planes` covers such schedules, too.

    Options: see `solvers.programs.optimize.optimize`.

    Raises:
        SolverError: the backend is missing or its licence does not cover the model.
    """
    build = functools.partial(build_frontier, deadline=problem.deadline)
    return _solve(problem, "milp", build, "fixed")


def solve_unpartitioned(problem: Problem) -> Solution:
    """The optimum of equation (1): n stages in each of which any node may be computed.

    Kept to compare with `milp`, as appendix A does: with a fixed order it has the same optimum
    and is far slower. It can also leave the order free.

    Raises:
        SolverError: the graph has nodes that equation (1) cannot express, such as stateful ones.
    """
    build = functools.partial(build_unpartitioned, order=problem.order, deadline=problem.deadline)
    return _solve(problem, "milp_unpartitioned", build, problem.order)


@dataclass(frozen=True)
class _Outcome:
    """What asking the backend came to; costs in the graph's unit."""

    schedule: Schedule | None
    status: Status
    bound: float | None
    statistics: dict[str, float]


def _solve(problem: Problem, name: str, build: Build, order: Order) -> Solution:
    """Ask for the optimum of what `build` builds, which holds for `order`."""
    incumbent = Incumbent(problem)
    easy = _without_program(problem, name, incumbent)
    if easy is not None:
        return easy
    problem.report(incumbent.cost, None, "building the model")
    try:
        outcome = _minimize(problem, build, incumbent)
    except KeyboardInterrupt:
        return _by_rule(problem, name, incumbent, "stopped")
    except OutOfTimeError:
        return _by_rule(problem, name, incumbent, "the time was up before the MILP was built")
    return _answer(problem, name, order, incumbent, outcome)


def _without_program(problem: Problem, name: str, incumbent: Incumbent) -> Solution | None:
    """The answer where no program is needed, or none can be built; `incumbent` works first."""
    graph = problem.graph
    if input_order_peak(graph) <= problem.budget:
        one_pass = Schedule(range(len(graph)))
        return answer(problem, name, one_pass, bound=graph.one_pass_cost, proved=True)
    incumbent.work(RULES_SHARE * problem.seconds_left)
    if problem.is_hopeless:
        return answer(problem, name, None, least_budget=incumbent.least_budget)
    if not fits_in_memory(graph):
        incumbent.work(problem.seconds_left)
        return _by_rule(problem, name, incumbent, "the MILP is too large to build")
    return None


def _answer(
    problem: Problem, name: str, order: Order, incumbent: Incumbent, outcome: _Outcome
) -> Solution:
    """The better of the program's schedule and the rules', with the program's bound."""
    graph = problem.graph
    own = math.inf
    if outcome.schedule is not None:
        own = simulate(graph, outcome.schedule).cost
        incumbent.offer(outcome.schedule)
    schedule, cost = incumbent.schedule, incumbent.cost
    note = by_rule(problem) if schedule is not None and cost < own else ""
    if outcome.status is Status.INFEASIBLE and schedule is None:
        note = _NO_SOLUTION
    bound = graph.one_pass_cost if outcome.bound is None else outcome.bound
    return answer(
        problem,
        name,
        schedule,
        bound=min(bound, cost),
        bound_order=order,
        among=EXPRESSIBLE,
        # A gap asked for, or a program with less memory, prove less than the backend says; and a
        # rule's schedule that costs less than the bound is none of those that it holds for.
        proved=order == problem.order and abs(cost - bound) <= PROVED * bound,
        least_budget=incumbent.least_budget,
        note=note,
        statistics=outcome.statistics,
    )


def _by_rule(problem: Problem, name: str, incumbent: Incumbent, why: str) -> Solution:
    return answer(
        problem,
        name,
        incumbent.schedule,
        bound=problem.graph.one_pass_cost,
        least_budget=incumbent.least_budget,
        note=f"{why}; {BY_RULE}",
    )


def _minimize(problem: Problem, build: Build, incumbent: Incumbent) -> _Outcome:
    """Solve the program; again with less memory where rounding took its answer over budget."""
    graph = problem.graph
    memory: float = problem.activation_budget
    bound: float | None = None
    statistics: dict[str, float] = {}

    def wait() -> None:
        incumbent.work(RULES_SECONDS)
        problem.report(incumbent.cost, bound, "solving the MILP")

    for attempt in range(_ATTEMPTS):
        before = problem.seconds
        program = build(graph, memory)
        model = program.model
        built = problem.seconds
        first = incumbent.schedule
        start = None if first is None else program.point(*first.to_matrices(graph))
        result = optimize(problem, model, start, wait)
        if attempt == 0:
            bound = program.lower_bound(result.bound)
            rows, columns = model.matrix.shape
            statistics = {"rows": rows, "columns": columns, "build_seconds": built - before}
        if result.values is None:
            # Only the program with the whole budget can prove that nothing fits.
            status = result.status if attempt == 0 else Status.TIMEOUT
            return _Outcome(None, status, bound, statistics)
        R, S = program.matrices(result.values)
        schedule = Schedule.from_matrices(graph, R > 0.5, S > 0.5)
        peak = simulate(graph, schedule).peak
        if peak <= problem.budget:
            return _Outcome(schedule, result.status, bound, statistics)
        # More each time: a backend does not tell apart budgets that differ by a few bytes.
        memory -= max(peak - problem.budget, attempt * _ROUNDING * problem.activation_budget)
    return _Outcome(None, Status.TIMEOUT, bound, statistics)
