"""The least memory that a graph can be computed in: what a search finds, and what is provable."""

from __future__ import annotations

import time
from dataclasses import dataclass

from solvers.graph import ComputationGraph, Schedule
from solvers.graph.bounds import memory_bound
from solvers.graph.order import Order
from solvers.local_search.search import compile_kernels, least_memory_found


@dataclass(frozen=True)
class LeastMemory:
    """What is known of the least memory, in bytes, `fixed_bytes` included.

    Attributes:
        schedule: the leanest one found.
        peak: what it needs.
        bound: no schedule, in the order that was asked for, needs less.
    """

    schedule: Schedule
    peak: int
    bound: int


def find_least_memory(
    graph: ComputationGraph, order: Order = "free", time_limit: float = 10.0, seed: int = 0
) -> LeastMemory:
    """Search for the schedule of least peak; the bound is `solvers.graph.bounds.memory_bound`.

    Args:
        time_limit: seconds, compilation (once, some 45) not included.

    Example:
        >>> from solvers import ComputationGraph, Node
        >>> a, b = Node("a", 1, 4), Node("b", 1, 3, dependencies=(0,))
        >>> least = find_least_memory(ComputationGraph((a, b)))
        >>> least.peak, least.bound
        (7, 7)
    """
    deadline = time.monotonic() + time_limit + compile_kernels()
    schedule, peak = least_memory_found(graph, order, deadline, seed)
    return LeastMemory(schedule, peak, memory_bound(graph, order))
