"""Lower bounds that need no program solved, and what whole-number costs add to any bound."""

from __future__ import annotations

import math

from solvers.graph import ComputationGraph
from solvers.solution import Problem

_NOISE = 1e-7


def lift_bound(graph: ComputationGraph, bound: float | None) -> float | None:
    """The least cost of a schedule that is not below `bound`.

    One pass is always needed; and where all costs are multiples of a whole number, so is the
    cost of every schedule. Floating-point noise of 1e-7 in `bound` is not lifted.

    Example:
        >>> from solvers.layer_graphs import unit_chain
        >>> lift_bound(unit_chain(8), 22.3)
        23.0
    """
    if bound is None:
        return None
    if all(node.cost == int(node.cost) for node in graph.nodes):
        step = math.gcd(*(int(node.cost) for node in graph.nodes))
        if step:
            bound = step * float(math.ceil(bound * (1 - _NOISE) / step))
    return max(bound, graph.one_pass_cost)


def node_over_budget(problem: Problem) -> tuple[int, int] | None:
    """A node that alone, with what it reads, exceeds the budget, and the bytes it needs.

    Every schedule computes it once, so none can be under budget. The node that needs most is
    told.
    """
    graph = problem.graph
    if not len(graph):
        return None
    needed = [
        graph.fixed_bytes
        + node.memory
        + node.workspace
        + sum(graph.nodes[read].memory for read in reads)
        for node, reads in zip(graph.nodes, graph.reads, strict=True)
    ]
    most = max(range(len(graph)), key=needed.__getitem__)
    return (most, needed[most]) if needed[most] > problem.budget else None
