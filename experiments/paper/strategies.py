"""The strategies of table 1, and Feng and Huang's: all plans of each rule, and solvers' answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from solvers import ComputationGraph, Schedule, simulate, solve
from solvers.checkpointing.articulation import articulation_points, is_chain
from solvers.checkpointing.cheapest import Matrices
from solvers.checkpointing.checkpoints import checkpoint_matrices, forward_nodes
from solvers.checkpointing.feng_huang import feng_huang_plans
from solvers.checkpointing.griewank import griewank_matrices, slot_counts
from solvers.checkpointing.heuristics import every_sqrt, greedy_sweep, last_matrices
from solvers.checkpointing.incumbent import BY_RULE
from solvers.graph.matrices import matrix_peak

Plan = dict[str, float]
"""Cost, and the activations' peak in bytes: "matrices" by (2)–(5), "simulator" as a sequence."""


def _sqrt(graph: ComputationGraph, candidates: list[int]) -> Iterator[Matrices]:
    if candidates:
        yield checkpoint_matrices(graph, every_sqrt(candidates))


def _greedy(graph: ComputationGraph, candidates: list[int]) -> Iterator[Matrices]:
    if candidates:
        yield from (matrices for _, matrices in greedy_sweep(graph, candidates))


def _griewank(graph: ComputationGraph) -> Iterator[Matrices]:
    if is_chain(graph):
        yield from (griewank_matrices(graph, slots) for slots in slot_counts(graph))


RULES: dict[str, Callable[[ComputationGraph], Iterator[Matrices]]] = {
    "checkpoint_all": lambda graph: iter([checkpoint_matrices(graph, forward_nodes(graph))]),
    "ap_sqrt": lambda graph: _sqrt(graph, articulation_points(graph)),
    "ap_greedy": lambda graph: _greedy(graph, articulation_points(graph)),
    "linearized_sqrt": lambda graph: _sqrt(graph, forward_nodes(graph)),
    "linearized_greedy": lambda graph: _greedy(graph, forward_nodes(graph)),
    "griewank": _griewank,
    "feng_huang": feng_huang_plans,
    "checkpoint_last": lambda graph: iter([last_matrices(graph)]),
}
"""Every rule's plans as (R, S). On a chain the two rules of Chen et al. are the AP ones."""

TITLES = {
    "checkpoint_all": "checkpoint all",
    "ap_sqrt": "AP √n",
    "ap_greedy": "AP greedy",
    "linearized_sqrt": "linearized √n",
    "linearized_greedy": "linearized greedy",
    "griewank": "Griewank log n",
    "feng_huang": "Feng and Huang",
    "checkpoint_last": "last node",
    "rounding": "LP rounding",
    "checkmate": "optimum",
}
"""What the pictures call them."""


def rules_for(graph: ComputationGraph) -> list[str]:
    """The rules that are valid on `graph`, each once: on a chain AP and linearized are the same.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> rules_for(unit_chain(3))
        ['checkpoint_all', 'ap_sqrt', 'ap_greedy', 'griewank', 'feng_huang', 'checkpoint_last']
    """
    chain = is_chain(graph)
    return [
        name
        for name in RULES
        if not (name.startswith("linearized") if chain else name == "griewank")
    ]


def plans(graph: ComputationGraph, rule: str) -> list[Plan]:
    """All plans of a rule, without those that another is at least as good as.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> plans(unit_chain(8), "ap_sqrt")
        [{'cost': 21.0, 'matrices': 7, 'simulator': 7}]
    """
    found: list[Plan] = []
    for R, S in RULES[rule](graph):
        simulation = simulate(graph, Schedule.from_matrices(graph, R, S))
        found.append(
            {
                "cost": simulation.cost,
                "matrices": matrix_peak(graph, R, S) - graph.fixed_bytes,
                "simulator": simulation.peak - graph.fixed_bytes,
            }
        )
    return [plan for plan in found if not any(_better(other, plan) for other in found)]


def _better(one: Plan, other: Plan) -> bool:
    return one != other and all(one[key] <= other[key] for key in one)


def cheapest_cost(found: list[Plan], activations: float, accounting: str) -> float | None:
    """The cost of the cheapest plan within `activations` bytes, or None."""
    costs = [plan["cost"] for plan in found if plan[accounting] <= activations]
    return min(costs, default=None)


def ask(
    graph: ComputationGraph,
    budget: int,
    solver: str,
    time_limit: float,
    options: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A solver's answer in a fixed order: cost, bound, peak, status, seconds.

    What a solver that ran out of time takes from a simple rule is not its answer.
    """
    given = solve(graph, budget, solver, time_limit, order="fixed", **(options or {}))
    is_own = BY_RULE not in given.note
    return {
        "cost": given.cost if is_own else None,
        "bound": given.bound,
        "peak": given.peak if is_own else None,
        "status": str(given.status),
        "seconds": round(given.seconds, 2),
    }
