"""The search state: a schedule that a move can change in little time, and its memory.

A search state has a row of positions. Each holds one computation or is empty; computations run
in the order of their positions. Every node has an ascending list of the positions at which it is
computed: the first computation, and then its recomputations.

A value lives from its computation to its last reader before the next computation of the same
node. So one computation more or less changes few lifetimes, and each is a range of positions.

    violation = Σ over positions of max(0, memory − budget)

is known after every move; see `local_search.memory_profile`. An empty position carries what lives
across it, never more than the position before. So the violation is zero exactly if the schedule
is under budget.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
SmallIntegers = NDArray[np.int32]

EMPTY = -1  # node at a position without a computation

# Indices of `SearchState.totals`.
VIOLATION, COMPUTATIONS, RECOMPUTED, JOURNALED, RANDOM = 0, 1, 2, 3, 4
TOTALS = 5


class Links(NamedTuple):
    """One relation between nodes: those of node i are `node[start[i]:start[i + 1]]`."""

    start: Integers
    node: Integers


class SearchState(NamedTuple):
    """A schedule, its memory, and room for moves. Sizes are in units of `layout.memory_unit`.

    The graph, which moves only read:
        cost, memory, workspace, recomputable: of every node.
        dependencies, users: what a node reads, and who reads it.
        predecessors, successors: whose first computations come before, and after, a node's own.
        expired_by, expires: before whose first computation all of a node's come, and the reverse.

    The schedule:
        node_at: the node at every position, or `EMPTY`.
        times_computed: how often every node is computed.
        position: of every computation, shape (nodes, most computations of one).
        last_read: where each of these values is read last; its own position if never.
        recomputed: the nodes that are computed more than once, in any order.
        recomputed_index: where each of them stands there.
        total_cost: shape (1,).
        totals: whole numbers; see the constants above.

    Its memory, see `local_search.memory_profile`:
        profile: shape (blocks, BLOCK).
        block_addend, block_max, block_min: of every block.

    Room for moves:
        mark: of every node, the position that a move has marked, or −1.
        to_recompute, to_drop, dragged: lists of (node, position), shape (2 MOST_DRAGGED, 2).
        journal: the changes of the current move: (1 or −1, node, position).
        best: the nodes of the cheapest schedule under budget so far, padded.
    """

    cost: NDArray[np.float64]
    memory: Integers
    workspace: Integers
    recomputable: NDArray[np.bool_]
    dependencies: Links
    users: Links
    predecessors: Links
    successors: Links
    expired_by: Links
    expires: Links
    node_at: Integers
    times_computed: Integers
    position: Integers
    last_read: Integers
    recomputed: Integers
    recomputed_index: Integers
    total_cost: NDArray[np.float64]
    totals: Integers
    profile: SmallIntegers
    block_addend: SmallIntegers
    block_max: SmallIntegers
    block_min: SmallIntegers
    mark: Integers
    to_recompute: Integers
    to_drop: Integers
    dragged: Integers
    journal: Integers
    best: Integers
