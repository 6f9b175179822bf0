"""The truth about tiny graphs: Dijkstra over all that can be computed and held in memory."""

from __future__ import annotations

import heapq
import random

import pytest

from solvers import ComputationGraph, Node, Solution, Status
from solvers.graph import input_order_peak
from solvers.graph.bounds import least_need

State = tuple[frozenset[int], frozenset[int]]
"""(computed at least once, held now)"""


def cheapest(graph: ComputationGraph, budget: int, order: str = "fixed") -> float | None:
    """Least cost of any schedule within `budget` bytes (`fixed_bytes` included), or None."""
    everything = frozenset(range(len(graph)))
    start: State = (frozenset(), frozenset())
    known: dict[State, float] = {start: 0.0}
    queue: list[tuple[float, int, State]] = [(0.0, 0, start)]
    pushed = 0
    while queue:
        cost, _, state = heapq.heappop(queue)
        if cost > known[state]:
            continue
        if state[0] == everything:
            return cost
        for further, node_cost in _neighbours(graph, budget, order, state):
            new_cost = cost + node_cost
            if new_cost < known.get(further, float("inf")):
                known[further] = new_cost
                pushed += 1
                heapq.heappush(queue, (new_cost, pushed, further))
    return None


def _neighbours(
    graph: ComputationGraph, budget: int, order: str, state: State
) -> list[tuple[State, float]]:
    computed, held = state
    found: list[tuple[State, float]] = [((computed, held - {i}), 0.0) for i in held]
    for i, node in enumerate(graph.nodes):
        if i in held or not _may_run(graph, order, computed, i):
            continue
        with_i = held | {i}
        values = sum(graph.nodes[each].memory for each in with_i)
        memory = values + node.workspace + graph.fixed_bytes
        if held.issuperset(node.dependencies) and memory <= budget:
            found.append(((computed | {i}, with_i), node.cost))
    return found


def _may_run(graph: ComputationGraph, order: str, computed: frozenset[int], i: int) -> bool:
    node = graph.nodes[i]
    if computed.intersection(node.expired_by):
        return False
    if i in computed:
        return node.recomputable
    if order == "fixed":
        return i == len(computed)
    return computed.issuperset(node.after)


def random_graph(seed: int, most_nodes: int = 8) -> ComputationGraph:
    """A tiny graph that uses every field of a node now and then."""
    draw = random.Random(seed)
    n = draw.randint(3, most_nodes)
    plain = draw.random() < 0.4
    nodes = []
    for i in range(n):
        earlier = list(range(i))
        dependencies = set(draw.sample(earlier[-2:], min(i, draw.choice([1, 1, 1, 2]))))
        if i > n // 2:
            dependencies.add(max(0, n - 1 - i))  # as a backward pass reads the forward one
        others = [each for each in earlier if each not in dependencies]
        special = not plain and draw.random() < 0.35
        nodes.append(
            Node(
                f"v{i}",
                cost=draw.choice([0, 1, 1, 2, 3, 5]),
                memory=draw.choice([0, 1, 1, 2, 3, 5]),
                workspace=draw.choice([1, 2, 3]) if special and draw.random() < 0.5 else 0,
                recomputable=not (special and draw.random() < 0.3),
                dependencies=tuple(sorted(dependencies)),
                after=tuple(draw.sample(others, min(len(others), draw.randint(0, 1) * special))),
                expired_by=(draw.randrange(i + 1, n),)
                if special and i + 1 < n and draw.random() < 0.4
                else (),
            )
        )
    return ComputationGraph(tuple(nodes), fixed_bytes=draw.choice([0, 7]), name=f"random {seed}")


def budgets(graph: ComputationGraph) -> list[int]:
    """Budgets from hopeless to generous: just under the greatest need of a node, and above it."""
    least = graph.fixed_bytes + least_need(graph)
    peak = input_order_peak(graph)
    sizes = {least - 1, *range(least, min(peak, least + 4)), peak - 1, peak}
    return sorted(each for each in sizes if each > 0)


def check_against_truth(solution: Solution, truth: float | None) -> None:
    """Assert what every answer must satisfy, and what a proof must."""
    if solution.status is Status.INFEASIBLE:
        assert truth is None
    if truth is None:
        assert solution.schedule is None
        return
    if solution.bound is not None:
        assert solution.bound <= truth * (1 + 1e-6) + 1e-9
    if solution.cost is not None:
        assert solution.cost >= truth - 1e-9
    if solution.status is Status.OPTIMAL:
        assert solution.cost == pytest.approx(truth, rel=1e-4)
