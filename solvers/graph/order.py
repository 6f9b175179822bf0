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
    ready = _ReadyNodes(graph)
    order: list[int] = []
    while ready.heap:
        _, node = heapq.heappop(ready.heap)
        if node not in ready.computed:
            order.append(node)
            ready.compute(node)
    return tuple(order)


class _ReadyNodes:
    """The nodes that may be computed next, while an order is built.

    Attributes:
        heap: (memory that it adds, node). A node that comes to add less gets another entry, which
            comes first; what is computed already stays in the heap.
        waiting: how many predecessors of each node are not yet computed.
        unread: how many readers of each value are not yet computed.
        computed: the nodes of the order so far.
    """

    def __init__(self, graph: ComputationGraph) -> None:
        """Nothing is computed yet."""
        before = predecessors(graph)
        self.graph = graph
        self.successors = inverse(before)
        self.waiting = [len(each) for each in before]
        self.unread = [len(users) for users in graph.users]
        self.computed: set[int] = set()
        self.heap: list[tuple[int, int]] = []
        for node in range(len(graph)):
            self._push_if_ready(node)

    def compute(self, node: int) -> None:
        """Add `node` to the order: others become ready, or add less memory than before."""
        self.computed.add(node)
        for read in self.graph.nodes[node].dependencies:
            self.unread[read] -= 1
            if self.unread[read] == 1:  # the last reader will free it
                for user in self.graph.users[read]:
                    self._push_if_ready(user)
        for successor in self.successors[node]:
            self.waiting[successor] -= 1
            self._push_if_ready(successor)

    def _push_if_ready(self, node: int) -> None:
        if not self.waiting[node] and node not in self.computed:
            heapq.heappush(self.heap, (self._added(node), node))

    def _added(self, number: int) -> int:
        nodes = self.graph.nodes
        reads = nodes[number].dependencies
        freed = sum(nodes[read].memory for read in reads if self.unread[read] == 1)
        return nodes[number].memory * bool(self.graph.users[number]) - freed
