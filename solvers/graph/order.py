"""Orders of first computations: of a schedule, as a new input order, and a greedy one."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from solvers.graph.computation_graph import ComputationGraph
from solvers.graph.schedule import Schedule
from solvers.graph.topological import inverse

Order = Literal["fixed", "free"]
"""Whether first computations keep the input order."""


def first_order(schedule: Schedule) -> tuple[int, ...]:
    """The nodes of `schedule` in the order of their first computations.

    Example:
        >>> first_order(Schedule([0, 2, 0, 1]))
        (0, 2, 1)
    """
    return tuple(dict.fromkeys(schedule.steps))


def renumber(graph: ComputationGraph, order: Sequence[int]) -> ComputationGraph:
    """The same graph with `order` as its input order: node `order[i]` becomes number i.

    Raises:
        GraphError: a node would come before one that it depends on.
    """
    rank = {node: number for number, node in enumerate(order)}

    def ranks(nodes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(rank[node] for node in nodes))

    nodes = tuple(
        replace(
            graph.nodes[node],
            dependencies=ranks(graph.nodes[node].dependencies),
            after=ranks(graph.nodes[node].after),
            expired_by=ranks(graph.nodes[node].expired_by),
        )
        for node in order
    )
    return replace(graph, nodes=nodes)


def predecessors(graph: ComputationGraph) -> list[set[int]]:
    """For every node, the nodes whose first computations come before its own in every order."""
    before = [{*node.dependencies, *node.after} for node in graph.nodes]
    for i, node in enumerate(graph.nodes):
        for other in node.expired_by:
            before[other].add(i)
    return before


def greedy_order(graph: ComputationGraph) -> tuple[int, ...]:
    """An order that computes next, of the nodes that are ready, the one that adds least memory.

    What a node adds is its output less the values that nobody reads after it. Of equals, the
    one first in input order comes first.
    """
    nodes, users = graph.nodes, graph.users
    before = predecessors(graph)
    successors = inverse(before)
    waiting = [len(each) for each in before]  # predecessors that are not yet computed
    unread = [len(each) for each in users]  # readers that are not yet computed
    # (memory that it adds, node). A node that comes to add less gets another entry, which comes
    # first; what is computed already stays in the heap.
    heap: list[tuple[int, int]] = []
    order: dict[int, None] = {}

    def push_if_ready(node: int) -> None:
        if not waiting[node] and node not in order:
            reads = nodes[node].dependencies
            freed = sum(nodes[read].memory for read in reads if unread[read] == 1)
            heapq.heappush(heap, (nodes[node].memory * bool(users[node]) - freed, node))

    for node in range(len(graph)):
        push_if_ready(node)
    while heap:
        _, node = heapq.heappop(heap)
        if node in order:
            continue
        order[node] = None
        for read in nodes[node].dependencies:
            unread[read] -= 1
            if unread[read] == 1:  # the last reader will free it
                for user in users[read]:
                    push_if_ready(user)
        for successor in successors[node]:
            waiting[successor] -= 1
            push_if_ready(successor)
    return tuple(order)
