"""The relaxation as a linear model: memory is constrained at some critical steps only.

The critical steps T_1 < … < T_K are steps of the fixed order. Segment k begins when v_P, P =
T_{k−1}, has first been computed. It ends with the first computation of v_{T_k}. The last segment,
k = K + 1, runs to the end. The variables are 0 or 1:

    L[k,i]  v_i is live while v_{T_k} is first computed                           i < T_k
    R[k,i]  v_i is recomputed in segment k                                        i ≤ P

    min Σ C_i R[k,i]
    (a)  L[k,i] ≤ A[k,i] + R[k,i]                                                 i ≤ P
    (b)  A[k,i] + R[k,i] ≥ 1       i ≤ P read by a first computation in segment k
    (c)  R[k,j] ≤ A[k,i] + R[k,i]                         i a dependency of j ≤ P
    (d)  Σ_i M_i L[k,i] + M_T + workspace_T ≤ budget                      T = T_k

A[k,i] says that segment k begins with v_i live: A[k,i] = L[k−1,i] for i < P, and A[k,P] = 1.
A cut (T_k, q) adds W[k,i], which says that v_i is retained through segment k, and two constraints:

    (e)  W[k,i] ≥ A[k,i] + L[k,i] − 1 − R[k,i]
    (f)  Σ_{i ∉ N(q)} M_i W[k,i] + (workspace_q + Σ_{i ∈ N(q)} M_i) R[k,q] ≤ budget

N(q) is q with its dependencies. A cover (T_k, C), of values that are over budget together while
v_{T_k} is first computed, adds

    (g)  Σ_{i ∈ C} L[k,i] ≤ |C| − 1

which (d) says as well, but not to backends: their sums of bytes have nine digits.

Every schedule under budget satisfies (a) to (g), so the optimum is a lower bound. Values without
memory are always live at no cost. They are no variables.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from solvers.graph import ComputationGraph, Schedule
from solvers.programs.builder import ONE, ZERO, Columns, LinearBuilder
from solvers.programs.linear_program import LinearModel, Vector

Booleans = NDArray[np.bool_]
Cut = tuple[int, int]
"""(T_k, q): the cut for a recomputation of q in the segment that ends with T_k."""

Cover = tuple[int, frozenset[int]]
"""(T_k, C): values other than v_{T_k} that cannot all be live while it is first computed."""

MEMORY_SCALE = 1000.0
"""The budget in the model's unit of memory."""

ALLOWED = MEMORY_SCALE * (1 + 1e-9)
"""The same with room for rounding, which can only lower the bound."""

COST_SCALE = 1000.0
"""The cost of one pass in the model's unit of cost."""

TOLERANCE = 1e-7
"""Share of the objective by which a backend's bound may be too high."""


@dataclass(frozen=True)
class Relaxation:
    """The relaxation for some critical steps and cuts.

    Attributes:
        critical_steps: T_1 < … < T_K.
        scale: a byte in the model's unit of memory.
        L: columns or constants, shape (K, n).
        R: columns or constants, shape (K + 1, n).
        build: what the model is made of.
        W: for every segment with cuts, columns or constants, shape (n,).
    """

    graph: ComputationGraph
    critical_steps: tuple[int, ...]
    scale: float
    L: Columns
    R: Columns
    build: LinearBuilder
    W: dict[int, Columns] = field(default_factory=dict)

    @cached_property
    def linear(self) -> LinearModel:
        """The model; its last column is the cost of one pass."""
        return self.build.model()

    @cached_property
    def memories(self) -> Vector:
        """Of every node's outputs, in the model's unit."""
        return np.asarray(self.graph.memories * self.scale, dtype=np.float64)

    def lower_bound(self, objective: float) -> float:
        """What a backend's bound proves of the cost, in the graph's unit."""
        return objective / COST_SCALE * self.graph.one_pass_cost * (1 - TOLERANCE)

    def at_begin(self, k: int) -> Columns:
        """A[k]: what segment k begins with."""
        if k == 0:
            return np.full(self.L.shape[1], ZERO, dtype=np.int64)
        live: Columns = self.L[k - 1].copy()
        live[self.critical_steps[k - 1]] = ONE
        return live

    def read(self, values: Vector) -> tuple[Booleans, Booleans]:
        """(L, R) at a point of `linear`."""
        rounded = np.concatenate([values > 0.5, [True, False]])  # …, ONE = −2, ZERO = −1
        return rounded[self.L], rounded[self.R]

    def point(self, schedule: Schedule) -> Vector:
        """The point of `linear` that says what `schedule`, in input order, does."""
        L, R = _live_and_recomputed(self.graph, self.critical_steps, schedule)
        values = np.zeros(len(self.linear.objective))
        values[-1] = 1.0
        for columns, wanted in ((self.L, L), (self.R, R)):
            is_column = columns >= 0
            values[columns[is_column]] = wanted[is_column]
        constants = np.concatenate([values, [1.0, 0.0]])
        for k, columns in self.W.items():
            found = self.at_begin(k)
            is_column = columns >= 0
            retained = constants[found] + constants[self.L[k]] - 1 - constants[self.R[k]]
            values[columns[is_column]] = np.maximum(0.0, retained[is_column])
        return values


def build_relaxation(
    graph: ComputationGraph,
    budget: int,
    critical_steps: tuple[int, ...],
    cuts: Iterable[Cut],
    unplaced: frozenset[int] = frozenset(),
    covers: Iterable[Cover] = (),
) -> Relaxation:
    """The relaxation at `critical_steps` with `cuts` and `covers`.

    Args:
        budget: in bytes, without `fixed_bytes`.
        unplaced: nodes that may first be computed in an earlier segment than they stand in, so
            that nothing follows for that segment from what they read; see `free_order_bound`.
    """
    build = LinearBuilder()
    L, R = _add_columns(build, graph, critical_steps, unplaced)
    draft = Relaxation(graph, critical_steps, MEMORY_SCALE / max(1, budget), L, R, build)
    for k in range(1, len(critical_steps) + 1):
        _add_segment(draft, k, unplaced)
    for k in range(len(critical_steps)):
        _add_memory(draft, k)
    for step, q in sorted(cuts):
        k = critical_steps.index(step)
        if k not in draft.W:
            draft.W[k] = _add_retained(draft, k)
        _add_cut(draft, k, q)
    for step, values in sorted((step, sorted(values)) for step, values in covers):
        columns = L[critical_steps.index(step), values].tolist()
        build.at_most(columns, [1.0] * len(columns), len(columns) - 1.0)
    build.column(COST_SCALE, lower=1.0)
    return draft


def last_needs(
    graph: ComputationGraph, unplaced: frozenset[int] = frozenset()
) -> NDArray[np.int64]:
    """The last step at which each value can be of use, also by recomputation of its readers."""
    needs = np.full(len(graph), -1, dtype=np.int64)
    for j in range(len(graph) - 1, -1, -1):
        node = graph.nodes[j]
        if node.recomputable and node.memory > 0:
            for i in node.dependencies:
                needs[i] = max(needs[i], needs[j])
        for i in node.dependencies if j not in unplaced else ():
            needs[i] = max(needs[i], j)
    return needs


def _add_columns(
    build: LinearBuilder,
    graph: ComputationGraph,
    critical_steps: tuple[int, ...],
    unplaced: frozenset[int],
) -> tuple[Columns, Columns]:
    """L and R: a variable only where it makes a difference, a constant elsewhere."""
    n, K = len(graph), len(critical_steps)
    needs = last_needs(graph, unplaced)
    has_memory = graph.memories > 0
    last_use = np.array(
        [
            max((user for user in users if user not in unplaced), default=-1)
            for users in graph.users
        ],
        dtype=np.int64,
    )
    # The step from which a value can only be retained, no longer recomputed.
    final = np.array(
        [min(node.expired_by, default=n) if node.recomputable else -1 for node in graph.nodes]
    )
    costs = graph.costs * (COST_SCALE / (graph.one_pass_cost or 1.0))
    step = np.arange(n)
    L = np.full((K, n), ZERO, dtype=np.int64)
    R = np.full((K + 1, n), ZERO, dtype=np.int64)
    for k in range(K + 1):
        P = critical_steps[k - 1] if k else -1
        free = (step <= P) & has_memory & (needs > P) & (final > P)
        R[k, free] = build.binaries(costs[free])
        if k == K:
            break
        T = critical_steps[k]
        surely_live = (step < T) & (~has_memory | ((last_use > T) & (final <= T)))
        surely_live[list(graph.nodes[T].dependencies)] = True
        free = (step < T) & (needs > T) & ~surely_live
        L[k, surely_live] = ONE
        L[k, free] = build.binaries(np.zeros(int(free.sum())))
    return L, R


def _add_segment(draft: Relaxation, k: int, unplaced: frozenset[int]) -> None:
    """(a), (b) and (c) for a segment after the first."""
    graph, steps, build = draft.graph, draft.critical_steps, draft.build
    P = steps[k - 1]
    end = steps[k] if k < len(steps) else len(graph) - 1
    A, R = draft.at_begin(k).tolist(), draft.R[k].tolist()
    if k < len(steps):
        L = draft.L[k].tolist()
        for i in range(P + 1):
            if L[i] != ZERO:
                build.at_most((L[i], A[i], R[i]), (1.0, -1.0, -1.0), 0.0)
    placed = [j for j in range(P + 1, end + 1) if j not in unplaced]
    for i in sorted({i for j in placed for i in graph.nodes[j].dependencies if i <= P}):
        build.at_most((A[i], R[i]), (-1.0, -1.0), -1.0)
    for j in range(len(graph)):
        for i in graph.nodes[j].dependencies if R[j] >= 0 else ():
            build.at_most((R[j], A[i], R[i]), (1.0, -1.0, -1.0), 0.0)


def _add_memory(draft: Relaxation, k: int) -> None:
    """(d)."""
    T = draft.critical_steps[k]
    node = draft.graph.nodes[T]
    own = (node.memory + node.workspace) * draft.scale
    draft.build.at_most(draft.L[k, :T].tolist(), draft.memories[:T].tolist(), ALLOWED - own)


def _add_retained(draft: Relaxation, k: int) -> Columns:
    """W[k] and (e); what cannot be live at one of both ends is not retained."""
    A, L, R = draft.at_begin(k), draft.L[k], draft.R[k]
    W = np.full(len(draft.graph), ZERO, dtype=np.int64)
    for i in np.flatnonzero((A != ZERO) & (L != ZERO)).tolist():
        if A[i] == ONE and L[i] == ONE and R[i] == ZERO:
            W[i] = ONE
            continue
        W[i] = draft.build.column()
        columns = (int(A[i]), int(L[i]), int(R[i]), int(W[i]))
        draft.build.at_most(columns, (1.0, 1.0, -1.0, -1.0), 1.0)
    return W


def _add_cut(draft: Relaxation, k: int, q: int) -> None:
    """(f)."""
    graph = draft.graph
    near = {q, *graph.nodes[q].dependencies}
    need = graph.nodes[q].workspace + sum(graph.nodes[i].memory for i in near)
    others = [i for i in range(draft.critical_steps[k]) if i not in near]
    columns = [*draft.W[k][others].tolist(), int(draft.R[k, q])]
    draft.build.at_most(columns, [*draft.memories[others].tolist(), need * draft.scale], ALLOWED)


def _live_and_recomputed(
    graph: ComputationGraph, critical_steps: tuple[int, ...], schedule: Schedule
) -> tuple[Booleans, Booleans]:
    """(L, R) of a schedule whose first computations are in input order."""
    K, n = len(critical_steps), len(graph)
    L = np.zeros((K, n), dtype=np.bool_)
    R = np.zeros((K + 1, n), dtype=np.bool_)
    live_from = np.full(n, -1)  # the first k for which the latest computation counts in L[k]
    segment_of = np.searchsorted(np.array(critical_steps), np.arange(n))
    reached = 0  # first computations so far
    for node in schedule.steps:
        is_first = node == reached
        segment = int(segment_of[reached]) if reached < n else K
        ends_segment = is_first and segment < K and critical_steps[segment] == node
        until = segment + ends_segment  # a step that ends its segment reads at that very end
        for read in graph.nodes[node].dependencies:
            L[live_from[read] : until, read] = True
        if is_first:
            reached += 1
        else:
            R[segment, node] = True
        live_from[node] = until
    return L, R
