"""Relations among the numbers 0 … n−1: reading them from the other end, and sorting by them."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence


def inverse(relation: Sequence[Collection[int]]) -> list[list[int]]:
    """For every number, those whose entry in `relation` holds it, ascending.

    Example:
        >>> inverse([(), (0,), (0, 1)])
        [[1, 2], [2], []]
    """
    inverted: list[list[int]] = [[] for _ in relation]
    for number, others in enumerate(relation):
        for other in others:
            inverted[other].append(number)
    return inverted


def topological_order(before: Sequence[Collection[int]]) -> list[int]:
    """Every number after all those in its entry of `before`; the least that may come next is next.

    Numbers on a cycle, and those that come after one, are left out. No entry names one twice.

    Example:
        >>> topological_order([(2,), (), ()])
        [1, 2, 0]
    """
    behind = inverse(before)
    waiting = [len(others) for others in before]
    ready = [number for number, count in enumerate(waiting) if not count]  # ascending: a heap
    order = []
    while ready:
        number = heapq.heappop(ready)
        order.append(number)
        for other in behind[number]:
            waiting[other] -= 1
            if not waiting[other]:
                heapq.heappush(ready, other)
    return order
