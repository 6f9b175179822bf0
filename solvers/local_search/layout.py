"""Laying out the search state of a graph: relations as flat arrays, and room for everything."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from solvers.graph import ComputationGraph
from solvers.graph.order import predecessors
from solvers.local_search.search_state import (
    EMPTY,
    RANDOM,
    TOTALS,
    Integers,
    Links,
    SearchState,
)
from solvers.local_search.settings import (
    BLOCK,
    COMPUTATIONS_SHARED,
    FEWEST_COMPUTATIONS,
    FEWEST_POSITIONS,
    JOURNAL_LENGTH,
    MOST_COMPUTATIONS,
    MOST_DRAGGED,
    MOST_UNITS,
    MOST_UNITS_OF_ONE,
    POSITIONS_PER_NODE,
    SMALL_GRAPH,
    SMALL_GRAPH_POSITIONS,
)
from solvers.problem import Order


def empty_state(graph: ComputationGraph, order: Order, seed: int) -> SearchState:
    """A search state for `graph` without a schedule.

    A fixed order is a relation between first computations: each comes after the one before it.
    """
    n = len(graph)
    blocks = most_blocks(n)
    positions = BLOCK * blocks
    unit = memory_unit(graph)
    dependencies = links([node.dependencies for node in graph.nodes])
    before = [sorted(each) for each in predecessors(graph)]
    if order == "fixed":
        before = [[i - 1] if i else [] for i in range(n)]
    expired_by = links([node.expired_by for node in graph.nodes])
    return SearchState(
        cost=graph.costs,
        memory=-(-graph.memories // unit),
        workspace=-(-graph.workspaces // unit),
        recomputable=np.array([node.recomputable for node in graph.nodes], dtype=np.bool_),
        dependencies=dependencies,
        users=reverse(dependencies),
        predecessors=links(before),
        successors=reverse(links(before)),
        expired_by=expired_by,
        expires=reverse(expired_by),
        node_at=np.full(positions, EMPTY, dtype=np.int64),
        times_computed=np.zeros(n, dtype=np.int64),
        position=np.zeros((n, most_computations(n)), dtype=np.int64),
        last_read=np.zeros((n, most_computations(n)), dtype=np.int64),
        recomputed=np.zeros(n, dtype=np.int64),
        recomputed_index=np.zeros(n, dtype=np.int64),
        total_cost=np.zeros(1),
        totals=first_totals(seed),
        profile=np.zeros((blocks, BLOCK), dtype=np.int32),
        block_addend=np.zeros(blocks, dtype=np.int32),
        block_max=np.zeros(blocks, dtype=np.int32),
        block_min=np.zeros(blocks, dtype=np.int32),
        mark=np.full(n, -1, dtype=np.int64),
        to_recompute=np.zeros((2 * MOST_DRAGGED, 2), dtype=np.int64),
        to_drop=np.zeros((2 * MOST_DRAGGED, 2), dtype=np.int64),
        dragged=np.zeros((2 * MOST_DRAGGED, 2), dtype=np.int64),
        journal=np.zeros((JOURNAL_LENGTH, 3), dtype=np.int64),
        best=np.zeros(positions, dtype=np.int64),
    )


def most_blocks(n: int) -> int:
    """Blocks of positions for `n` nodes; small graphs get room for more recomputations."""
    per_node = SMALL_GRAPH_POSITIONS if n <= SMALL_GRAPH else POSITIONS_PER_NODE
    return -(-max(per_node * n, FEWEST_POSITIONS) // BLOCK)


def most_computations(n: int) -> int:
    """How often one of `n` nodes may be computed; more room makes every move slower."""
    return min(MOST_COMPUTATIONS, max(FEWEST_COMPUTATIONS, COMPUTATIONS_SHARED // max(1, n)))


def memory_unit(graph: ComputationGraph) -> int:
    """Bytes per unit of memory: sizes are rounded up to units, most often exactly."""
    sizes = np.concatenate([graph.memories, graph.workspaces])
    largest, total = int(sizes.max()), int(sizes.sum())
    needed = max(1, -(-largest // MOST_UNITS_OF_ONE), -(-total // MOST_UNITS))
    common = max(1, int(np.gcd.reduce(sizes)))
    return common * -(-needed // common)


def first_totals(seed: int) -> Integers:
    """Totals of a search state without a schedule, its random numbers begun from `seed`."""
    totals = np.zeros(TOTALS, dtype=np.int64)
    totals[RANDOM] = np.random.default_rng(seed).integers(1, 2**62)
    return totals


def links(lists: Sequence[Sequence[int]]) -> Links:
    """The relation that gives node i the nodes `lists[i]`."""
    start = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int64)
    node = np.array(list(itertools.chain.from_iterable(lists)), dtype=np.int64)
    return Links(start, node)


def reverse(forward: Links) -> Links:
    """The relation read from the other end."""
    n = len(forward.start) - 1
    source = np.repeat(np.arange(n), np.diff(forward.start))
    by_target = np.argsort(forward.node, kind="stable")
    start = np.searchsorted(forward.node[by_target], np.arange(n + 1)).astype(np.int64)
    return Links(start, source[by_target].astype(np.int64))
