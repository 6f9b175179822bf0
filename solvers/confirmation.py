"""Checks every solver's answer: costs and peaks are computed again, claims must not contradict."""

from __future__ import annotations

from dataclasses import replace

from solvers.errors import AnswerError, ScheduleError
from solvers.graph import Schedule, Simulation, simulate
from solvers.graph.bounds import least_need
from solvers.graph.budget import format_bytes
from solvers.graph.order import first_order
from solvers.problem import PROVED, Problem, Solution, Status

_NOISE = 1e-6
"""Relative difference of sums of costs that is rounding."""


def confirmed(problem: Problem, solver: str, given: Solution) -> Solution:
    """The solution `given` by `solver`, with cost and peak of the simulator.

    A schedule over budget is dropped, and `least_budget` then says what it would need. The bound
    and the proofs cannot be computed again, but they must not contradict what is known: this
    schedule, and the one that computes every node once in input order.

    Raises:
        AnswerError: the schedule cannot be executed, or a claim is not true. The message names
            the solver.
    """
    who = f"solver {solver!r} on {problem.graph.name!r}"
    if not isinstance(given, Solution):
        raise AnswerError(
            "answer-not-a-solution",
            f"{who} answers with a {type(given).__name__}; a Solution is expected",
        )
    solution = replace(given, solver=solver, budget=problem.budget)
    known: list[Simulation] = []
    if given.schedule is not None:
        found = _executed(problem, who, given.schedule)
        known.append(found)
        least = min(found.peak, given.least_budget or found.peak)
        solution = replace(solution, cost=found.cost, peak=found.peak, least_budget=least)
        if found.peak > problem.budget:
            solution = _without_schedule(solution)
    known.append(simulate(problem.graph, Schedule(range(len(problem.graph)))))
    for each in known:
        _check_against(each, problem, who, solution)
    _check_status(problem, who, solution)
    return solution


def _executed(problem: Problem, who: str, schedule: Schedule) -> Simulation:
    graph = problem.graph
    if not isinstance(schedule, Schedule):
        raise AnswerError(
            "answer-not-a-schedule",
            f"{who}: its schedule is a {type(schedule).__name__}; a Schedule is expected",
        )
    try:
        simulation = simulate(graph, schedule)
    except ScheduleError as error:
        raise AnswerError(error.code, f"{who}: its schedule cannot be executed: {error}") from error
    order = first_order(schedule)
    wrong = next((each for place, each in enumerate(order) if each != place), None)
    if problem.order == "fixed" and wrong is not None:
        earlier = graph.nodes[order.index(wrong)].name
        raise AnswerError(
            "answer-in-another-order",
            f"{who}: its schedule first computes {graph.nodes[wrong].name!r} before {earlier!r}, "
            "though the order is fixed",
        )
    return simulation


def _without_schedule(solution: Solution) -> Solution:
    assert solution.peak is not None
    note = f"its schedule needs {format_bytes(solution.peak)}, more than the budget"
    infeasible = solution.status is Status.INFEASIBLE
    return replace(
        solution,
        status=Status.INFEASIBLE if infeasible else Status.TIMEOUT,
        schedule=None,
        cost=None,
        peak=None,
        note="; ".join(filter(None, (solution.note, note))),
    )


def _check_against(each: Simulation, problem: Problem, who: str, solution: Solution) -> None:
    """Fail where a schedule of input order, or the solver's own, refutes a claim."""
    least = solution.provable_budget
    if least is not None and each.peak < least:
        raise AnswerError(
            "claim-refuted",
            f"{who} says that none below {least} bytes is enough, but a schedule takes {each.peak}",
        )
    if each.peak > problem.budget:
        return
    if solution.status is Status.INFEASIBLE:
        raise AnswerError(
            "claim-refuted",
            f"{who} says infeasible of {problem.budget} bytes, but knows a schedule of "
            f"{each.peak} bytes",
        )
    bound = solution.bound
    if bound is not None and not bound <= each.cost * (1 + _NOISE):
        raise AnswerError(
            "claim-refuted",
            f"{who} claims a bound of {bound:g} on the cost, but a schedule within the budget "
            f"costs {each.cost:g}",
        )


def _check_status(problem: Problem, who: str, solution: Solution) -> None:
    has_schedule = solution.schedule is not None
    if has_schedule != (solution.status in (Status.OPTIMAL, Status.FEASIBLE)):
        gives = "a schedule" if has_schedule else "no schedule"
        raise AnswerError(
            "status-contradicts-schedule", f"{who} says {solution.status} and gives {gives}"
        )
    need = problem.graph.fixed_bytes + least_need(problem.graph)
    if solution.least_budget is not None and solution.least_budget < need:
        raise AnswerError(
            "claim-refuted",
            f"{who} says that {solution.least_budget} bytes are enough, but one node alone "
            f"takes {need}",
        )
    if solution.status is not Status.OPTIMAL:
        return
    assert solution.cost is not None
    claim = f"{who} calls a cost of {solution.cost:g} optimal"
    if solution.bound is None:
        raise AnswerError("optimum-unproved", f"{claim} and gives no bound")
    if solution.cost > solution.bound * (1 + PROVED):
        raise AnswerError("optimum-unproved", f"{claim} with a bound of {solution.bound:g}")
    one_order = problem.order == "free" and solution.bound_order == "fixed"
    # Where nothing is computed twice that costs anything, no order costs less.
    if one_order and solution.cost > problem.graph.one_pass_cost * (1 + _NOISE):
        raise AnswerError(
            "optimum-unproved",
            f"{claim}, but its bound is for one order only, and any was asked for",
        )
