"""Chooses among plans given as (R, S): what every solver with a swept parameter ends with."""

from __future__ import annotations

from collections.abc import Iterable

from solvers.errors import SolverError
from solvers.graph import BoolMatrix, Schedule, simulate
from solvers.graph.budget import format_bytes
from solvers.graph.matrices import matrix_peak
from solvers.problem import Problem, Solution, answer

Matrices = tuple[BoolMatrix, BoolMatrix]


def cheapest(problem: Problem, name: str, plans: Iterable[Matrices]) -> Solution:
    """The cheapest of `plans` under budget, or else what the leanest of them would need.

    The option `accounting="matrices"` compares equations (2)–(5) with the budget, as the paper
    does, instead of the simulator's peak of the same schedule, which can only be lower.
    """
    accounting = problem.options.get("accounting", "simulator")
    if accounting not in ("simulator", "matrices"):
        raise SolverError(
            "option-invalid", f"accounting {accounting!r} is neither 'simulator' nor 'matrices'"
        )
    found: list[tuple[Schedule, float, int]] = []
    tried = "every plan of this rule was tried"
    for R, S in plans:
        schedule = Schedule.from_matrices(problem.graph, R, S)
        simulation = simulate(problem.graph, schedule)
        by_matrices = accounting == "matrices"
        peak = matrix_peak(problem.graph, R, S) if by_matrices else simulation.peak
        found.append((schedule, simulation.cost, peak))
        if problem.seconds_left == 0:
            tried = "the time was up"
            break
    statistics = {"plans": len(found)}
    fitting = [(schedule, cost) for schedule, cost, peak in found if peak <= problem.budget]
    if fitting:
        best, _ = min(fitting, key=lambda plan: plan[1])
        return answer(problem, name, best, statistics=statistics)
    least = min(peak for _, _, peak in found)
    note = f"{tried}; the leanest of {len(found)} needs {format_bytes(least)}"
    return answer(problem, name, None, least_budget=least, note=note, statistics=statistics)
