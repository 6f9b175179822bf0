"""Lower bounds on memory and cost that follow from the graph alone."""

from __future__ import annotations

import functools
import math
import operator

import numpy as np
from numpy.typing import NDArray

from solvers.graph.computation_graph import ComputationGraph
from solvers.graph.order import Order, predecessors

_NOISE = 1e-7


def lift_bound(graph: ComputationGraph, bound: float | None) -> float | None:
    """The least cost that a schedule can have if none costs less than `bound`.

    Every schedule costs at least one pass. If all costs are multiples of a whole number, so is
    the cost of every schedule. The last 1e-7 of `bound` counts as rounding.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
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
    """Bytes that every computation of each node takes, `fixed_bytes` excluded.

    These are its output, its workspace, and all that it reads.
    """
    return [
        node.memory + node.workspace + sum(graph.nodes[read].memory for read in node.dependencies)
        for node in graph.nodes
    ]


def least_need(graph: ComputationGraph) -> int:
    """Bytes without which some node cannot be computed, `fixed_bytes` excluded."""
    return max(needs(graph), default=0)


def memory_bound(graph: ComputationGraph, order: Order) -> int:
    """Bytes without which no schedule exists, `fixed_bytes` included.

    It is the most that any node j takes together with the values that must be in memory beside
    it. Value i must be if i comes before j, some reader of i after j, and i cannot be recomputed
    in between: it may run only once, or it has expired. In a free order, before and after mean
    before and after in every order.

    Example:
        >>> from solvers import ComputationGraph, Node
        >>> a = Node("a", 1, 4, recomputable=False)
        >>> b, c = Node("b", 1, 3, dependencies=(0,)), Node("c", 1, 3, dependencies=(1,))
        >>> d = Node("d", 1, 1, dependencies=(0, 2))
        >>> memory_bound(ComputationGraph((a, b, c, d)), "free")  # a waits for d while c runs
        10
    """
    needed = np.array(needs(graph), dtype=np.int64)
    if not len(needed):
        return graph.fixed_bytes
    before, after = always_before_and_after(graph, order)
    for i, node in enumerate(graph.nodes):
        if not node.memory or (node.recomputable and not node.expired_by):
            continue
        since = after[i]
        if node.recomputable:
            since &= functools.reduce(operator.or_, (after[w] | 1 << w for w in node.expired_by))
        until = functools.reduce(operator.or_, (before[user] for user in graph.users[i]), 0)
        readers = functools.reduce(operator.or_, (1 << user for user in graph.users[i]), 0)
        needed[members(since & until & ~readers, len(graph))] += node.memory
    return graph.fixed_bytes + int(needed.max())


def always_before_and_after(graph: ComputationGraph, order: Order) -> tuple[list[int], list[int]]:
    """For every node, as bits: whose first computations precede, and follow, its own for sure."""
    n = len(graph)
    if order == "fixed":
        return [(1 << i) - 1 for i in range(n)], [(1 << n) - (1 << (i + 1)) for i in range(n)]
    before, after = [0] * n, [0] * n
    direct = predecessors(graph)
    for i in range(n):
        for other in direct[i]:
            before[i] |= before[other] | 1 << other
    for i in reversed(range(n)):
        for other in direct[i]:
            after[other] |= after[i] | 1 << i
    return before, after


def members(bits: int, n: int) -> NDArray[np.int64]:
    """The numbers below n that `bits` holds, ascending."""
    packed = np.frombuffer(bits.to_bytes(-(-n // 8), "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(packed, bitorder="little"))
