"""A lower bound on the cost that holds for every order of first computations.

In every order a node comes after its ancestors and before its descendants. The relaxation of
`cutting_planes.relaxation` therefore needs no fixed order if its critical steps form a chain
T_1 ≺ … ≺ T_K, each an ancestor of the next, and if it claims only what every order implies:

- While T_k runs, (d) counts the values of ancestors of T_k only.
- In segment k, (b) holds only for what is read by nodes that are certainly in that segment. These
  come after T_{k−1} and before T_k in every order.

The graph is renumbered so that each node is in the last segment that it may be in: that of the
first T_k that it must precede. A node that need not follow T_{k−1} is called unplaced: (b) ignores
it. If it is recomputed in a later segment, (c) holds as ever.
"""

from __future__ import annotations

import functools
import operator
import time

import numpy as np
from numpy.typing import NDArray

from solvers.cutting_planes.fixed_order import LARGE
from solvers.cutting_planes.relaxation import build_relaxation
from solvers.graph import ComputationGraph
from solvers.graph.bounds import always_before_and_after, members
from solvers.graph.order import predecessors, renumber
from solvers.problem import Status
from solvers.programs.backends import Backend

GAP = 2e-4
"""Relative gap to which the relaxation is solved."""

FEW_CHUNKS = ((1,), (2,))
"""Into so many parts the chain is divided; each part gives a critical step. Their bounds are there
at once, and some are the highest: of fewer nodes (b) says nothing."""

CHUNKS = (*FEW_CHUNKS, (8, 12))
"""The same for graphs that are not large; in the last one the chain is divided twice."""


def free_order_bound(
    graph: ComputationGraph, budget: int, solver: Backend, time_limit: float
) -> float:
    """No schedule under `budget` costs less, in any order; infinity if there is none.

    Args:
        budget: in bytes, `fixed_bytes` included.
        time_limit: seconds.

    Example:
        >>> from solvers.programs.backends import backend
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> round(free_order_bound(unit_chain(8), 6, backend("highs"), 10), 3)
        21.0
    """
    memory = budget - graph.fixed_bytes
    before, after = always_before_and_after(graph, "free")
    pressure = _pressure(graph, before, after)
    chain = _scarcest_chain(graph, pressure - memory)
    end = time.monotonic() + time_limit
    best = graph.one_pass_cost
    enough = FEW_CHUNKS if len(graph) > LARGE else CHUNKS
    for counts in enough if chain else ():
        chosen = _worst_of_chunks(chain, pressure, counts)
        order, unplaced = _late_order(graph, chosen, before, after)
        rank = {node: number for number, node in enumerate(order)}
        relaxation = build_relaxation(
            renumber(graph, order),
            memory,
            tuple(rank[node] for node in chosen),
            cuts=(),
            unplaced=frozenset(rank[node] for node in unplaced),
        )
        left = max(0.01, end - time.monotonic())
        result = solver(relaxation.linear, time_limit=left, relative_gap=GAP)
        if result.status is Status.INFEASIBLE:
            return float("inf")
        if result.bound is not None:
            best = max(best, relaxation.lower_bound(result.bound))
    return best


def _pressure(graph: ComputationGraph, before: list[int], after: list[int]) -> NDArray[np.int64]:
    """Bytes around the first computation of each node if nothing is ever recomputed."""
    pressure = graph.memories + graph.workspaces
    for i, users in enumerate(graph.users):
        until = functools.reduce(operator.or_, (before[user] | 1 << user for user in users), 0)
        pressure[members(after[i] & until, len(graph))] += graph.nodes[i].memory
    return pressure


def _scarcest_chain(graph: ComputationGraph, violation: NDArray[np.int64]) -> list[int]:
    """The nodes over budget on the chain with the greatest sum of bytes over budget.

    Args:
        violation: what each node takes above the budget in bytes; negative where there is room.
    """
    best = np.maximum(violation, 0)
    previous = np.full(len(graph), -1)
    for i, direct in enumerate(predecessors(graph)):
        for other in direct:
            if best[other] + max(0, violation[i]) > best[i]:
                best[i] = best[other] + max(0, violation[i])
                previous[i] = other
    chain: list[int] = []
    node = int(np.argmax(best)) if len(best) else -1
    while node >= 0:
        chain.append(node)
        node = int(previous[node])
    return [node for node in reversed(chain) if violation[node] > 0]


def _worst_of_chunks(
    chain: list[int], pressure: NDArray[np.int64], counts: tuple[int, ...]
) -> list[int]:
    """Of each of so many parts of `chain`, the node under the greatest pressure, in its order."""
    along = np.array(chain, dtype=np.int64)
    worst: set[int] = set()
    for count in counts:
        for places in np.array_split(np.arange(len(along)), count):
            if len(places):
                worst.add(int(places[np.argmax(pressure[along[places]])]))
    return [chain[place] for place in sorted(worst)]


def _late_order(
    graph: ComputationGraph, chosen: list[int], before: list[int], after: list[int]
) -> tuple[list[int], list[int]]:
    """An order with every node in the segment of the first chosen one that it must precede, and
    the nodes that may also come earlier.
    """
    order: list[int] = []
    unplaced: list[int] = []
    placed = 0
    follows = (1 << len(graph)) - 1  # whoever must follow the previous chosen node
    for node in [*chosen, None]:
        rest = ((1 << len(graph)) - 1 if node is None else before[node] | 1 << node) & ~placed
        segment = members(rest, len(graph)).tolist()
        order += segment
        unplaced += [each for each in segment if not follows >> each & 1]
        placed |= rest
        follows = 0 if node is None else after[node]
    return order, unplaced
