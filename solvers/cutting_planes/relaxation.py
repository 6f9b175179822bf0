"""The moments relaxation as a linear model.

Moments T_1 < … < T_K are steps of the fixed order. Segment k is what happens after v_P, P =
T_{k−1}, is first computed, up to and including v_{T_k}; the last segment runs to the end.

    L[k,i]  v_i is live while v_{T_k} is first computed                           i < T_k
    R[k,i]  v_i is computed again in segment k                                    i ≤ P

    min Σ C_i R[k,i]
    L[k,i] ≤ A[k,i] + R[k,i]                                                      i ≤ P
    A[k,i] + R[k,i] ≥ 1            i ≤ P read by a first computation in segment k
    R[k,j] ≤ A[k,i] + R[k,i]                              i a dependency of j ≤ P
    Σ_i M_i L[k,i] + M_T + workspace_T ≤ budget                           T = T_k
where A[k,i] = L[k−1,i] for i < P and A[k,P] = 1: v_P has just been computed. A cut (k, q) adds

    W[k,i] ≥ A[k,i] + L[k,i] − 1 − R[k,i]               v_i stays through segment k
    Σ_{i ∉ N(q)} M_i W[k,i] + (workspace_q + Σ_{i ∈ N(q)} M_i) R[k,q] ≤ budget
with N(q) = {q} ∪ dependencies of q. Every schedule under budget satisfies all of this, so the
optimum is a lower bound. Values without memory are kept for ever at no price and are not variables.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.graph import ComputationGraph, Schedule
from solvers.programs.linear_program import LinearModel, Vector

Columns = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Cut = tuple[int, int]
"""(T_k, q): the cut for a repeat of q in the segment that ends with the moment T_k."""

ZERO, ONE = -1, -2  # in place of a column: the variable is this constant

MEMORY_SCALE = 1000.0  # the budget in the model's own unit
ALLOWED = MEMORY_SCALE * (1 + 1e-9)  # and with room for rounding, which only lowers the bound
COST_SCALE = 1000.0  # the cost of one pass in the model's own unit


def last_needs(
    graph: ComputationGraph, unplaced: frozenset[int] = frozenset()
) -> NDArray[np.int64]:
    """The last step at which each value can be of use, be it through repeats of its readers."""
    needs = np.full(len(graph), -1, dtype=np.int64)
    for j in range(len(graph) - 1, -1, -1):
        node = graph.nodes[j]
        if node.recomputable and node.memory > 0:
            for i in node.dependencies:
                needs[i] = max(needs[i], needs[j])
        for i in node.dependencies if j not in unplaced else ():
            needs[i] = max(needs[i], j)
    return needs


@dataclass
class _Rows:
    """Rows of a sparse matrix; constants move to the right-hand side as they come."""

    starts: list[int] = field(default_factory=lambda: [0])
    columns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)

    def add(self, terms: Iterable[tuple[int, float]], upper: float) -> None:
        """Add  Σ coefficient × column ≤ upper,  unless it always holds."""
        greatest = 0.0
        for column, coefficient in terms:
            if column == ONE:
                upper -= coefficient
            elif column >= 0:
                self.columns.append(column)
                self.values.append(coefficient)
                greatest += max(0.0, coefficient)
        if greatest <= upper and len(self.columns) > self.starts[-1]:
            del self.columns[self.starts[-1] :], self.values[self.starts[-1] :]
        elif greatest > upper:
            self.starts.append(len(self.columns))
            self.upper.append(upper)


@dataclass(frozen=True)
class MomentsModel:
    """The relaxation for given moments and cuts.

    Attributes:
        moments: T_1 < … < T_K.
        L: columns or constants, shape (K, n).
        R: columns or constants, shape (K + 1, n).
        W: for every segment with cuts, columns or constants, shape (n,).
        linear: the model; its last column is one pass's cost.
    """

    graph: ComputationGraph
    moments: tuple[int, ...]
    L: Columns
    R: Columns
    W: dict[int, Columns]
    linear: LinearModel

    def cost(self, objective: float) -> float:
        """An objective of `linear` in the graph's unit of cost."""
        return objective / COST_SCALE * self.graph.one_pass_cost

    def read(self, values: Vector) -> tuple[Booleans, Booleans]:
        """(L, R) at a point of `linear`."""
        rounded = np.concatenate([values > 0.5, [True, False]])  # …, ONE = −2, ZERO = −1
        return rounded[self.L], rounded[self.R]

    def point(self, schedule: Schedule) -> Vector:
        """The point of `linear` that says what `schedule`, in input order, does."""
        L, R = _describe(self.graph, self.moments, schedule)
        values = np.zeros(len(self.linear.objective))
        values[-1] = 1.0
        for columns, wanted in ((self.L, L), (self.R, R)):
            is_column = columns >= 0
            values[columns[is_column]] = wanted[is_column]
        constants = np.concatenate([values, [1.0, 0.0]])
        for k, columns in self.W.items():
            kept = _available(self.L, self.moments, k)
            is_column = columns >= 0
            stays = constants[kept] + constants[self.L[k]] - 1 - constants[self.R[k]]
            values[columns[is_column]] = np.maximum(0.0, stays[is_column])
        return values


def build_model(
    graph: ComputationGraph,
    budget: int,
    moments: tuple[int, ...],
    cuts: Iterable[Cut],
    unplaced: frozenset[int] = frozenset(),
) -> MomentsModel:
    """The relaxation at `moments` with `cuts`.

    Args:
        budget: in bytes, without `fixed_bytes`.
        unplaced: nodes that may first be computed in an earlier segment than they stand in, so
            that nothing follows for that segment from what they read; see `free_order_bound`.
    """
    L, R, count = _number_columns(graph, moments, unplaced)
    scale = MEMORY_SCALE / max(1, budget)
    memories = graph.memories * scale
    rows = _Rows()
    for k in range(len(moments) + 1):
        _add_segment(rows, graph, moments, k, L, R, unplaced)
    for k, moment in enumerate(moments):
        terms = [(int(L[k, i]), memories[i]) for i in range(moment) if L[k, i] != ZERO]
        own = (graph.nodes[moment].memory + graph.nodes[moment].workspace) * scale
        rows.add(terms, ALLOWED - own)
    W: dict[int, Columns] = {}
    for moment, q in sorted(cuts):
        k = moments.index(moment)
        if k not in W:
            W[k], count = _add_stays(rows, moments, k, L, R, count)
        near = {q, *graph.nodes[q].dependencies}
        terms = [(int(W[k][i]), memories[i]) for i in range(moment) if i not in near]
        need = graph.nodes[q].workspace + sum(graph.nodes[i].memory for i in near)
        rows.add([*terms, (int(R[k, q]), need * scale)], ALLOWED)
    return MomentsModel(graph, moments, L, R, W, _assemble(graph, rows, L, R, count))


def _number_columns(
    graph: ComputationGraph, moments: tuple[int, ...], unplaced: frozenset[int]
) -> tuple[Columns, Columns, int]:
    n, segments = len(graph), len(moments) + 1
    needs = last_needs(graph, unplaced)
    has_memory = graph.memories > 0
    last_use = np.array(
        [
            max((user for user in users if user not in unplaced), default=-1)
            for users in graph.users
        ],
        dtype=np.int64,
    )
    # The step from which a value can only be kept, no longer computed again.
    final = np.array(
        [min(node.expired_by, default=n) if node.recomputable else -1 for node in graph.nodes]
    )
    step = np.arange(n)
    L = np.full((segments - 1, n), ZERO, dtype=np.int64)
    R = np.full((segments, n), ZERO, dtype=np.int64)
    count = 0
    for k in range(segments):
        P = moments[k - 1] if k else -1
        free = (step <= P) & has_memory & (needs > P) & (final > P)
        R[k, free] = count + np.arange(free.sum())
        count += int(free.sum())
        if k == segments - 1:
            break
        T = moments[k]
        kept = (step < T) & (~has_memory | ((last_use > T) & (final <= T)))
        kept[list(graph.nodes[T].dependencies)] = True
        free = (step < T) & (needs > T) & ~kept
        L[k, kept] = ONE
        L[k, free] = count + np.arange(free.sum())
        count += int(free.sum())
    return L, R, count


def _available(L: Columns, moments: tuple[int, ...], k: int) -> Columns:
    """A[k]: what segment k finds."""
    if k == 0:
        return np.full(L.shape[1], ZERO, dtype=np.int64)
    kept: Columns = L[k - 1].copy()
    kept[moments[k - 1]] = ONE
    return kept


def _add_segment(
    rows: _Rows,
    graph: ComputationGraph,
    moments: tuple[int, ...],
    k: int,
    L: Columns,
    R: Columns,
    unplaced: frozenset[int],
) -> None:
    """The first three families of rows for segment k."""
    if k == 0:
        return
    P = moments[k - 1]
    T = moments[k] if k < len(moments) else len(graph) - 1
    kept = _available(L, moments, k)
    if k < len(moments):
        for i in np.flatnonzero(L[k, : P + 1] != ZERO).tolist():
            rows.add([(int(L[k, i]), 1.0), (int(kept[i]), -1.0), (int(R[k, i]), -1.0)], 0.0)
    placed = [j for j in range(P + 1, T + 1) if j not in unplaced]
    for i in sorted({i for j in placed for i in graph.nodes[j].dependencies if i <= P}):
        rows.add([(int(kept[i]), -1.0), (int(R[k, i]), -1.0)], -1.0)
    for j in np.flatnonzero(R[k] >= 0).tolist():
        for i in graph.nodes[j].dependencies:
            rows.add([(int(R[k, j]), 1.0), (int(kept[i]), -1.0), (int(R[k, i]), -1.0)], 0.0)


def _add_stays(
    rows: _Rows, moments: tuple[int, ...], k: int, L: Columns, R: Columns, count: int
) -> tuple[Columns, int]:
    """W[k] and its rows; a value that cannot be live at one of both ends does not stay."""
    kept = _available(L, moments, k)
    columns = np.full(L.shape[1], ZERO, dtype=np.int64)
    for i in np.flatnonzero((kept != ZERO) & (L[k] != ZERO)):
        if kept[i] == ONE and L[k, i] == ONE and R[k, i] == ZERO:
            columns[i] = ONE
            continue
        columns[i] = count
        count += 1
        rows.add(
            [
                (int(kept[i]), 1.0),
                (int(L[k, i]), 1.0),
                (int(R[k, i]), -1.0),
                (int(columns[i]), -1.0),
            ],
            1.0,
        )
    return columns, count


def _assemble(
    graph: ComputationGraph, rows: _Rows, L: Columns, R: Columns, count: int
) -> LinearModel:
    objective = np.zeros(count + 1)
    one_pass = graph.one_pass_cost or 1.0
    for columns in R:
        is_column = columns >= 0
        objective[columns[is_column]] = graph.costs[is_column] * (COST_SCALE / one_pass)
    objective[count] = COST_SCALE
    lower = np.zeros(count + 1)
    lower[count] = 1.0
    integer = np.zeros(count + 1, dtype=np.bool_)
    for columns in (L, R):
        integer[columns[columns >= 0]] = True
    shape = (len(rows.upper), count + 1)
    matrix = sp.csr_matrix((rows.values, rows.columns, rows.starts), shape=shape, dtype=np.float64)
    return LinearModel(
        objective,
        matrix,
        np.full(shape[0], -np.inf),
        np.array(rows.upper, dtype=np.float64),
        lower,
        np.ones(count + 1),
        integer,
    )


def _describe(
    graph: ComputationGraph, moments: tuple[int, ...], schedule: Schedule
) -> tuple[Booleans, Booleans]:
    """(L, R) of a schedule whose first computations are in input order."""
    K, n = len(moments), len(graph)
    L = np.zeros((K, n), dtype=np.bool_)
    R = np.zeros((K + 1, n), dtype=np.bool_)
    made = np.full(n, -1)
    segment_of = np.searchsorted(np.array(moments), np.arange(n))
    reached = 0  # first computations so far
    for node in schedule.steps:
        is_first = node == reached
        now = int(segment_of[reached]) if reached < n else K
        for read in graph.nodes[node].dependencies:
            # Live at the moments since it was computed, this one included.
            L[made[read] : min(now + (is_first and node == _at(moments, now)), K), read] = True
        if is_first:
            reached += 1
        else:
            R[now, node] = True
        made[node] = now + (is_first and node == _at(moments, now))
    return L, R


def _at(moments: tuple[int, ...], k: int) -> int:
    return moments[k] if k < len(moments) else -1
