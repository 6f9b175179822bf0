"""Cost against memory: a sweep over budgets in which each answer helps the next."""

from __future__ import annotations

import time
from collections.abc import Sequence

from solvers.auto import solve_auto
from solvers.budget import Budget, parse_budget
from solvers.graph import ComputationGraph
from solvers.schedule import Schedule
from solvers.solution import Order, Problem, Solution


def pareto(
    graph: ComputationGraph,
    budgets: Sequence[int | float | str | Budget],
    time_limit: float = 60.0,
    *,
    order: Order = "free",
    seed: int = 0,
) -> list[Solution]:
    """Solve for every budget, from the smallest up; costs never rise with the budget.

    A schedule under a small budget is under every larger one, so it is where the next search
    begins.

    Args:
        budgets: as in `solvers.solve`.
        time_limit: seconds for the whole sweep, shared evenly among what is left of it.

    Returns:
        The solutions in the order of `budgets`.

    Raises:
        BudgetError: one of `budgets` is not a size.

    Example:
        >>> from solvers.layer_graphs import unit_chain
        >>> from solvers.pareto import pareto
        >>> [solution.cost for solution in pareto(unit_chain(8), [10, 5], order="fixed")]
        [17.0, 22.0]
    """
    sizes = [
        parse_budget(each).in_bytes(graph.fixed_bytes, graph.input_order_peak) for each in budgets
    ]
    deadline = time.monotonic() + time_limit
    known: list[Schedule] = []
    solutions: dict[int, Solution] = {}
    ascending = sorted(set(sizes))
    for place, size in enumerate(ascending):
        share = max(0.1, deadline - time.monotonic()) / (len(ascending) - place)
        problem = Problem(graph, size, share, order, seed, options={"starts": tuple(known)})
        solutions[size] = solve_auto(problem)
        schedule = solutions[size].schedule
        if schedule is not None:
            known = [schedule]
    return [solutions[size] for size in sizes]
