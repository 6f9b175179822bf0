"""Orders of first computations: reading them off, renumbering a graph by one, greedy ones."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from solvers.graph.computation_graph import ComputationGraph
from solvers.graph.schedule import Schedule

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

    What a node adds is its output less the values that nobody reads after it.
    """
    before = predecessors(graph)
    behind: list[list[int]] = [[] for _ in graph.nodes]
    waiting = [len(each) for each in before]
    for i, each in enumerate(before):
        for other in each:
            behind[other].append(i)
    unread = [len(users) for users in graph.users]

    def added(i: int) -> int:
        node = graph.nodes[i]
        freed = sum(graph.nodes[read].memory for read in node.dependencies if unread[read] == 1)
        return node.memory * bool(graph.users[i]) - freed

    ready = [(added(i), i) for i in range(len(graph)) if waiting[i] == 0]
    heapq.heapify(ready)
    order: list[int] = []
    done = [False] * len(graph)
    while ready:
        _, i = heapq.heappop(ready)
        if done[i]:
            continue
        done[i] = True
        order.append(i)
        for other in behind[i]:
            waiting[other] -= 1
            if waiting[other] == 0:
                heapq.heappush(ready, (added(other), other))
        for read in graph.nodes[i].dependencies:
            unread[read] -= 1
            if unread[read] == 1:
                # The last reader of this value has become cheaper: queue it again.
                for user in graph.users[read]:
                    if not done[user] and waiting[user] == 0:
                        heapq.heappush(ready, (added(user), user))
    return tuple(order)
