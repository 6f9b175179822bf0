"""Lower bounds on memory and cost that need no program solved."""

from __future__ import annotations

import math

from solvers.graph import ComputationGraph

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


def needs(graph: ComputationGraph) -> list[int]:
    """Bytes that the first computation of each node takes in any order, `fixed_bytes` excluded.

    These are its output, its workspace, and all that it reads.
    """
    return [
        node.memory + node.workspace + sum(graph.nodes[read].memory for read in reads)
        for node, reads in zip(graph.nodes, graph.reads, strict=True)
    ]


def least_need(graph: ComputationGraph) -> int:
    """Bytes without which some node cannot be computed in any order, `fixed_bytes` excluded."""
    return max(needs(graph), default=0)


def node_over_budget(graph: ComputationGraph, budget: int) -> tuple[int, int] | None:
    """The node that alone, with what it reads, exceeds `budget` most, and the bytes it needs.

    `fixed_bytes` is part of both. Every schedule computes the node, so none is under budget.
    """
    needed = needs(graph)
    most = max(range(len(graph)), key=needed.__getitem__, default=None)
    if most is None or needed[most] + graph.fixed_bytes <= budget:
        return None
    return most, needed[most] + graph.fixed_bytes
