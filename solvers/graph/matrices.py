"""The paper's matrices (R, S): their peak by equations (2)–(5), and the least R for an S.

R[t, i] says that stage t computes node i, S[t, i] that its value is retained from stage t−1
into stage t; both have shape (n, n) and stage t ends with the first computation of node t.
"""

from __future__ import annotations

import heapq

import numpy as np

from solvers.graph.computation_graph import ComputationGraph
from solvers.graph.schedule import BoolMatrix


def matrix_peak(graph: ComputationGraph, R: BoolMatrix, S: BoolMatrix) -> int:
    """Peak in bytes of (R, S) by equations (2)–(5), `fixed_bytes` included.

    A value counts as long as S retains it, even if nothing reads it any more. So this is never
    less than the peak that `simulate` finds for the same matrices read as a sequence. A value
    that a stage neither reads nor retains further is freed at its start (Alg. 1). The published
    figures of the heuristics are counted this way.

    Example:
        >>> import numpy as np
        >>> from solvers import ComputationGraph, Node
        >>> chain = ComputationGraph((Node("a", 1, 4), Node("b", 2, 3, dependencies=(0,))))
        >>> matrix_peak(chain, np.eye(2, dtype=bool), np.eye(2, k=-1, dtype=bool))
        7
    """
    peak = 0
    kept_next = np.vstack([S[1:], np.zeros((1, len(graph)), dtype=np.bool_)])
    for t in range(len(graph)):
        computed = [int(k) for k in np.flatnonzero(R[t])]
        last_read = {i: k for k in computed for i in graph.nodes[k].dependencies}
        used = kept_next[t].copy()
        used[list(last_read)] = True
        memory = int(graph.memories[S[t] & used].sum())  # (2)
        for k in computed:
            memory += int(graph.memories[k])  # (3)
            peak = max(peak, memory + int(graph.workspaces[k]))
            freed = [  # (4), (5)
                i for i in graph.nodes[k].dependencies if last_read[i] == k and not kept_next[t, i]
            ]
            memory -= int(graph.memories[freed].sum())
    return peak + graph.fixed_bytes


def least_recomputation(graph: ComputationGraph, S: BoolMatrix) -> tuple[BoolMatrix, BoolMatrix]:
    """The R with the fewest computations for which (R, S) is a schedule, and S (section 5).

    Every 1 in R is forced: the diagonal by (8), a value that S begins to retain by (1c), and what
    the computations of a stage read by (1b). A stage is scanned from right to left, so that what
    is added to it is scanned, too. A stateful or expired value cannot be recomputed; it is
    retained from where it last was. Only in that the returned S differs from the one given.
    """
    n = len(graph)
    R = np.eye(n, dtype=np.bool_)
    S = np.tril(S, -1)
    expires = [min(node.expired_by, default=n) for node in graph.nodes]
    begins: list[list[int]] = [[] for _ in range(n)]
    for t, i in np.argwhere(S[1:] & ~S[:-1]).tolist():
        begins[t].append(i)
    for t in range(n):
        scan = [-t]  # a heap of negated node numbers: the rightmost comes first
        for i in begins[t]:
            if i != t:
                _provide(graph, R, S, t, i, expires[i], scan)
        while scan:
            k = -heapq.heappop(scan)
            for i in graph.nodes[k].dependencies:
                if not (R[t, i] or S[t, i]):
                    _provide(graph, R, S, t, i, expires[i], scan)
    return R, S


def _provide(
    graph: ComputationGraph,
    R: BoolMatrix,
    S: BoolMatrix,
    t: int,
    i: int,
    expires: int,
    scan: list[int],
) -> None:
    """Make node i's value available in stage t: compute it there, or retain it until there."""
    if graph.nodes[i].recomputable and t <= expires:
        R[t, i] = True
        heapq.heappush(scan, -i)
    else:
        last = int(np.flatnonzero(R[:t, i] | S[:t, i])[-1])
        S[last + 1 : t + 1, i] = True
