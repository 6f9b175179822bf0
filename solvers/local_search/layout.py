"""Laying out a graph on an empty tape: relations as flat arrays, sizes of everything."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from solvers.graph import ComputationGraph
from solvers.graph.order import predecessors
from solvers.local_search.search_state import BLOCK, DRAGGED, RANDOM, TOTALS, Integers, Links, Tape
from solvers.problem import Order

JOURNAL_LENGTH = 4096
MOST_OF_ONE, MOST_OF_ALL = 2**24, 2**30  # units of memory
SLOTS_PER_NODE = 4
FEWEST_TIMES, MOST_TIMES, TIMES_OF_ALL = 16, 20, 2000  # for how often a node is computed
ROOMY, ROOMY_SLOTS = 1000, 8  # nodes up to which there is room for more repeats, and how much


def build_tape(graph: ComputationGraph, order: Order, seed: int) -> Tape:
    """An empty tape for `graph`; a fixed order is one more relation between first computations."""
    n = len(graph)
    times = most_times(n)
    per_node = ROOMY_SLOTS if n <= ROOMY else SLOTS_PER_NODE
    slots = BLOCK * -(-max(per_node * n, 128) // BLOCK)
    before = [sorted(each) for each in predecessors(graph)]
    if order == "fixed":
        before = [[i - 1] if i else [] for i in range(n)]
    unit = memory_unit(graph)
    expired_by = [list(node.expired_by) for node in graph.nodes]
    reads = links([node.dependencies for node in graph.nodes])
    return Tape(
        cost=graph.costs,
        memory=-(-graph.memories // unit),
        workspace=-(-graph.workspaces // unit),
        recomputable=np.array([node.recomputable for node in graph.nodes], dtype=np.bool_),
        reads=reads,
        users=reverse(reads),
        before=links(before),
        behind=reverse(links(before)),
        expired_by=links(expired_by),
        expires=reverse(links(expired_by)),
        occupant=np.full(slots, -1, dtype=np.int64),
        times=np.zeros(n, dtype=np.int64),
        slot=np.zeros((n, times), dtype=np.int64),
        end=np.zeros((n, times), dtype=np.int64),
        profile=np.zeros((slots // BLOCK, BLOCK), dtype=np.int32),
        addend=np.zeros(slots // BLOCK, dtype=np.int32),
        high=np.zeros(slots // BLOCK, dtype=np.int32),
        low=np.zeros(slots // BLOCK, dtype=np.int32),
        repeated=np.zeros(n, dtype=np.int64),
        place=np.zeros(n, dtype=np.int64),
        mark=np.full(n, -1, dtype=np.int64),
        pending=np.zeros((2 * DRAGGED, 2), dtype=np.int64),
        moved=np.zeros((2 * DRAGGED, 2), dtype=np.int64),
        best=np.zeros(slots, dtype=np.int64),
        journal=np.zeros((JOURNAL_LENGTH, 3), dtype=np.int64),
        total_cost=np.zeros(1),
        totals=first_totals(seed),
    )


def most_times(n: int) -> int:
    """How often one of `n` nodes may be computed; more room makes every move slower."""
    return min(MOST_TIMES, max(FEWEST_TIMES, TIMES_OF_ALL // max(1, n)))


def memory_unit(graph: ComputationGraph) -> int:
    """Bytes per unit of memory on a tape: sizes are rounded up to units, most often exactly.

    A block of the profile is summed in 32 bits, so no value may have more than 2**24 units, nor all
    together more than 2**30.
    """
    sizes = np.concatenate([graph.memories, graph.workspaces])
    largest, total = int(sizes.max()), int(sizes.sum())
    needed = max(1, -(-largest // MOST_OF_ONE), -(-total // MOST_OF_ALL))
    common = max(1, int(np.gcd.reduce(sizes)))
    return common * -(-needed // common)


def first_totals(seed: int) -> Integers:
    """Totals of an empty tape, with the state of its random numbers."""
    totals = np.zeros(TOTALS, dtype=np.int64)
    totals[RANDOM] = np.random.default_rng(seed).integers(1, 2**62)
    return totals


def links(lists: Sequence[Sequence[int]]) -> Links:
    """Lists of nodes, one a node, as `Links`."""
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
