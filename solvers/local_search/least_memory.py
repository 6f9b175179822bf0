"""The least memory that a graph can be computed in: what a search finds, and what is provable."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from solvers.graph import ComputationGraph, Schedule, simulate
from solvers.graph.bounds import least_need, memory_bound
from solvers.graph.order import Order
from solvers.local_search import settings
from solvers.local_search.chain import Chain, compile_kernels
from solvers.local_search.search import Search, Start, moves_per_round, starts_of


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


def least_memory_found(
    graph: ComputationGraph,
    order: Order,
    deadline: float,
    seed: int = 0,
    known: Schedule | None = None,
) -> tuple[Schedule, int]:
    """The schedule of least peak that a search finds, and its peak, `fixed_bytes` included.

    Each round aims at a peak lower than the best so far, the next one less low after a miss.

    Args:
        known: a schedule to begin with, if it is leaner than those without recomputation.
    """
    starts = starts_of(graph, order)
    if known is not None and Chain(graph, order, seed).fits(known):
        starts.append(known)
    best = min(starts, key=lambda each: simulate(graph, each).peak)
    peak = simulate(graph, best).peak
    floor = graph.fixed_bytes + least_need(graph)
    moves = moves_per_round(graph) // settings.LEAST_MEMORY_ROUND
    ambition = settings.FIRST_AMBITION
    round_number = 0
    while peak > floor and ambition > settings.LAST_AMBITION and time.monotonic() < deadline:
        target = floor + int((peak - floor) * (1 - ambition))
        search = Search(graph, target, order, seed + round_number, 1)
        search.round([Start(best, settings.WARM)], moves, deadline, math.inf, lambda: None)
        round_number += 1
        if search.schedule is None or not search.fits(search.schedule):
            ambition /= 2
        else:
            best, peak = search.schedule, simulate(graph, search.schedule).peak
    return best, peak
