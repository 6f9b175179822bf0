"""Laying out the search state of a graph: relations as flat arrays, and room for everything."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from solvers.graph import ComputationGraph
from solvers.graph.order import predecessors
from solvers.graph.topological import inverse
from solvers.local_search import settings
from solvers.local_search.search_state import (
    EMPTY,
    RANDOM,
    TOTALS,
    Links,
    SearchState,
)
from solvers.problem import Order


def empty_state(graph: ComputationGraph, order: Order, seed: int) -> SearchState:
    """A search state for `graph` without a schedule.

    A fixed order is a relation between first computations: each comes after the one before it.
    """
    n = len(graph)
    is_small = n <= settings.SMALL_GRAPH  # and gets room for more recomputations
    per_node = settings.SMALL_GRAPH_POSITIONS if is_small else settings.POSITIONS_PER_NODE
    blocks = -(-max(per_node * n, settings.FEWEST_POSITIONS) // settings.BLOCK)
    positions = settings.BLOCK * blocks
    unit = memory_unit(graph)
    before = [sorted(each) for each in predecessors(graph)]
    if order == "fixed":
        before = [[i - 1] if i else [] for i in range(n)]
    expired_by = [node.expired_by for node in graph.nodes]
    totals = np.zeros(TOTALS, dtype=np.int64)
    totals[RANDOM] = np.random.default_rng(seed).integers(1, 2**62)
    return SearchState(
        cost=graph.costs,
        memory=-(-graph.memories // unit),
        workspace=-(-graph.workspaces // unit),
        recomputable=np.array([node.recomputable for node in graph.nodes], dtype=np.bool_),
        dependencies=links([node.dependencies for node in graph.nodes]),
        users=links(graph.users),
        predecessors=links(before),
        successors=links(inverse(before)),
        expired_by=links(expired_by),
        expires=links(inverse(expired_by)),
        node_at=np.full(positions, EMPTY, dtype=np.int64),
        times_computed=np.zeros(n, dtype=np.int64),
        position=np.zeros((n, settings.MOST_COMPUTATIONS), dtype=np.int64),
        last_read=np.zeros((n, settings.MOST_COMPUTATIONS), dtype=np.int64),
        recomputed=np.zeros(n, dtype=np.int64),
        recomputed_index=np.zeros(n, dtype=np.int64),
        total_cost=np.zeros(1),
        totals=totals,
        profile=np.zeros((blocks, settings.BLOCK), dtype=np.int32),
        block_addend=np.zeros(blocks, dtype=np.int32),
        block_max=np.zeros(blocks, dtype=np.int32),
        block_min=np.zeros(blocks, dtype=np.int32),
        mark=np.full(n, -1, dtype=np.int64),
        to_recompute=np.zeros((2 * settings.MOST_DRAGGED, 2), dtype=np.int64),
        to_drop=np.zeros((2 * settings.MOST_DRAGGED, 2), dtype=np.int64),
        dragged=np.zeros((2 * settings.MOST_DRAGGED, 2), dtype=np.int64),
        journal=np.zeros((settings.JOURNAL_LENGTH, 3), dtype=np.int64),
        best=np.zeros(positions, dtype=np.int64),
    )


def memory_unit(graph: ComputationGraph) -> int:
    """Bytes per unit of memory: sizes are rounded up to units, most often exactly."""
    sizes = np.concatenate([graph.memories, graph.workspaces])
    largest, total = int(sizes.max()), int(sizes.sum())
    needed = max(1, -(-largest // settings.MOST_UNITS_OF_ONE), -(-total // settings.MOST_UNITS))
    common = max(1, int(np.gcd.reduce(sizes)))
    return common * -(-needed // common)


def links(lists: Sequence[Sequence[int]]) -> Links:
    """The relation that gives node i the nodes `lists[i]`."""
    start = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int64)
    node = np.array(list(itertools.chain.from_iterable(lists)), dtype=np.int64)
    return Links(start, node)
