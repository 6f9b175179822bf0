"""The MILP of the paper as one sparse `LinearModel`: equation (9), and equation (1).

The variables, for stages t and nodes i, k:

    R[t,i]       v_i is computed in stage t
    S[t,i]       v_i is retained from stage t − 1 into stage t
    FREE[t,i,k]  v_i is freed after v_k is computed in stage t, for (v_i, v_k) ∈ E
    U[t,k]       memory in use just after v_k is computed in stage t

Here the frontier-advancing form (9) is smaller than the printed one, with the same optimum:

- By (8) only the lower triangle of R and S is not zero. The rest are no variables.
- The first stages, in which everything fits, are left out: all is retained, nothing recomputed.
- R[t,i] and S[t,i] are left out where no node from t on can have a use for v_i.
- Other constraints stand for (7b) and (7c); see `_add_free`. They have the same integer solutions
  and fewer fractional ones.

`printed=True` builds the form as printed, for comparison. `watched` names the stages that have FREE
and U; see `solvers.checkmate.lp_relaxation`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Container
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from solvers.errors import SolverError
from solvers.graph import BoolMatrix, ComputationGraph
from solvers.graph.bounds import lift_bound
from solvers.problem import Order
from solvers.programs.builder import ZERO, LinearBuilder
from solvers.programs.linear_program import LinearModel, Vector

BUDGET = 1000.0
"""The budget in the model's unit of memory: a solver's tolerance of 1e-6 is then a billionth."""

_MOST_FREE = 2_000_000
"""FREE variables of the largest program that is built."""


class OutOfTimeError(Exception):
    """The time was up before a program was built."""


@dataclass(frozen=True)
class FrontierProgram:
    """A `LinearModel` of the question, and the way from its points to (R, S) and back.

    Attributes:
        memory_unit: bytes per unit of memory in the model.
        cost_unit: the graph's cost per unit of the objective.
        fixed_cost: what is not in the objective, in the graph's unit.
        first_stage: the first stage that is modelled; before it everything is kept.
        R, S: the column of each R[t, i] and S[t, i], −1 where it is absent; shape (n, n).
        free: the column of FREE[t, i, k] under the key (t, i, k).
        used: the column of U[t, k] under the key (t, k), in execution order.
        build: what the model is made of.
    """

    graph: ComputationGraph
    memory_unit: float
    cost_unit: float
    fixed_cost: float
    first_stage: int
    R: NDArray[np.int64]
    S: NDArray[np.int64]
    free: dict[tuple[int, int, int], int] = field(default_factory=dict)
    used: dict[tuple[int, int], int] = field(default_factory=dict)
    build: LinearBuilder = field(default_factory=LinearBuilder)

    @cached_property
    def model(self) -> LinearModel:
        """The program."""
        return self.build.model()

    def computable(self, t: int) -> list[int]:
        """The nodes that stage t may compute, in input order."""
        return [int(k) for k in np.flatnonzero(self.R[t] != ZERO)]

    def readers(self, t: int) -> dict[int, list[int]]:
        """For every value, the nodes that stage t may compute and that then read it."""
        readers: dict[int, list[int]] = {}
        for k in self.computable(t):
            for i in self.graph.nodes[k].dependencies:
                readers.setdefault(i, []).append(k)
        return readers

    def cost(self, objective: float) -> float:
        """The objective in the graph's unit of cost."""
        return self.fixed_cost + objective * self.cost_unit

    def lower_bound(self, objective: float | None) -> float | None:
        """What a backend's bound on the objective, if it gives one, proves of the cost."""
        return lift_bound(self.graph, None if objective is None else self.cost(objective))

    def matrices(self, values: Vector) -> tuple[Vector, Vector]:
        """R* and S* of a point, each of shape (n, n), whole or fractional."""
        n = len(self.graph)
        early = np.arange(n)[:, None] < self.first_stage
        R = np.where(early, np.eye(n), 0.0)
        S = np.where(early, np.tri(n, k=-1), 0.0)
        for columns, matrix in ((self.R, R), (self.S, S)):
            there = columns != ZERO
            matrix[there] = values[columns[there]]
        return R, S

    def point(self, R: BoolMatrix, S: BoolMatrix) -> Vector:
        """The point of the model that stands for (R, S), for a warm start."""
        n = len(self.graph)
        values = np.zeros(len(self.model.objective))
        for columns, matrix in ((self.R, R), (self.S, S)):
            there = columns != ZERO
            values[columns[there]] = matrix[there]
        kept_next = np.vstack([S[1:], np.zeros((1, n), dtype=np.bool_)])
        memories = self.graph.memories / self.memory_unit
        for t in range(self.first_stage, n):
            computed = [int(k) for k in np.flatnonzero(R[t])]
            last_read = {i: k for k in computed for i in self.graph.nodes[k].dependencies}
            freed_by: dict[int, float] = {}
            for i, k in last_read.items():
                if (t, i, k) in self.free and not kept_next[t, i]:
                    values[self.free[t, i, k]] = 1.0
                    freed_by[k] = freed_by.get(k, 0.0) + memories[i]
            memory = float(memories[S[t]].sum())
            for k in range(t + 1):
                if (t, k) in self.used:
                    memory += memories[k] * R[t, k]
                    values[self.used[t, k]] = memory
                    memory -= freed_by.get(k, 0.0)
        return values


def build_frontier(
    graph: ComputationGraph,
    activation_budget: float,
    *,
    printed: bool = False,
    watched: Container[int] | None = None,
    tight: bool = True,
    deadline: float = math.inf,
) -> FrontierProgram:
    """Equation (9) for `graph` under `activation_budget` bytes, `fixed_bytes` not included.

    Args:
        printed: the form as printed; see the module.
        watched: stages whose memory is limited at every node that they compute, all by default. If
            they are given, so is what is retained after each stage; a relaxation of (9).
        tight: of what is retained, limit it beside what the last node of the stage needs. This is
            implied by (9) for whole numbers only.
        deadline: as `time.monotonic` counts.

    Raises:
        OutOfTimeError: the deadline passed before the program was built.
    """
    first_stage = 0 if printed else first_tight_stage(graph, activation_budget)
    draft = _draft(graph, activation_budget, first_stage, graph.one_pass_cost)
    reach = _last_descendants(graph)
    n = len(graph)
    expires = [min(node.expired_by, default=n) for node in graph.nodes]
    for t in range(first_stage, n):
        for i in range(t):
            if printed or reach[i] >= t:
                draft.S[t, i] = draft.build.column(integer=True)
                if graph.nodes[i].recomputable and t <= expires[i]:
                    cost = graph.nodes[i].cost / draft.cost_unit
                    draft.R[t, i] = draft.build.column(cost, integer=True)
        draft.R[t, t] = draft.build.column(lower=1.0)  # (8)
    if watched is not None:
        for t in range(first_stage, n - 1):
            _add_retained(draft, t, tight)
    return _with_rows(draft, printed, range(n) if watched is None else watched, deadline)


def build_unpartitioned(
    graph: ComputationGraph,
    activation_budget: float,
    *,
    order: Order = "free",
    printed: bool = False,
    deadline: float = math.inf,
) -> FrontierProgram:
    """Equation (1) for `graph`: n stages, in each of which any node may be computed.

    Args:
        order: "fixed" adds that first computations keep the input order, "free" does not.
        printed: (7) as printed, and (1e) for the last node only, which the others follow from where
            everything leads to it.
        deadline: as `time.monotonic` counts.

    Raises:
        OutOfTimeError: the deadline passed before the program was built.
        SolverError: the graph says more of a node than equation (1) can.
    """
    for node in graph.nodes:
        if node.after or node.expired_by or not node.recomputable:
            raise SolverError(
                "graph-not-expressible",
                f"{graph.name}: node {node.name!r} is stateful, expires, or must follow another "
                "that it does not read; the unpartitioned MILP cannot express that, use milp",
            )
    draft = _draft(graph, activation_budget, first_stage=0, fixed_cost=0.0)
    n = len(graph)
    for t in range(n):
        for i in range(n):
            cost = graph.nodes[i].cost / draft.cost_unit
            draft.R[t, i] = draft.build.column(cost, integer=True)
            if t:
                draft.S[t, i] = draft.build.column(integer=True)
    for i in range(n):
        if not printed or i == n - 1:
            draft.build.row(list(draft.R[:, i]), [1.0] * n, lower=1)  # (1e), of every node
        for t in range(n if i and order == "fixed" else 0):
            earlier = draft.R[: t + 1, i - 1]
            draft.build.row((draft.R[t, i], *earlier), [1.0] + [-1.0] * len(earlier), upper=0)
    return _with_rows(draft, printed, range(n), deadline)


def fits_in_memory(graph: ComputationGraph) -> bool:
    """Whether the program of `graph` can be built; beyond, memory gives out before time does."""
    return len(graph) * len(graph.edges) <= 2 * _MOST_FREE


def first_tight_stage(graph: ComputationGraph, activation_budget: float) -> int:
    """The first stage that exceeds the budget if all before it is kept; n if there is none."""
    tight = np.cumsum(graph.memories) + graph.workspaces > activation_budget
    return int(np.argmax(tight)) if tight.any() else len(graph)


def _draft(
    graph: ComputationGraph, activation_budget: float, first_stage: int, fixed_cost: float
) -> FrontierProgram:
    """A program without columns and rows."""
    shape = (len(graph), len(graph))
    return FrontierProgram(
        graph,
        memory_unit=activation_budget / BUDGET,
        cost_unit=graph.one_pass_cost / 1000 or 1.0,
        fixed_cost=fixed_cost,
        first_stage=first_stage,
        R=np.full(shape, ZERO, dtype=np.int64),
        S=np.full(shape, ZERO, dtype=np.int64),
    )


def _with_rows(
    draft: FrontierProgram, printed: bool, watched: Container[int], deadline: float
) -> FrontierProgram:
    """With the constraints of every stage that is modelled."""
    for t in range(draft.first_stage, len(draft.graph)):
        if time.monotonic() > deadline:
            raise OutOfTimeError
        _add_correctness(draft, t, printed)
        if t in watched:
            (_add_printed_free if printed else _add_free)(draft, t)
            _add_memory(draft, t)
    return draft


def _last_descendants(graph: ComputationGraph) -> list[int]:
    """For every node the last stage that can have a use for its value."""
    reach = [max(users, default=-1) for users in graph.users]
    for number in range(len(graph) - 1, -1, -1):
        for read in graph.nodes[number].dependencies:
            reach[read] = max(reach[read], reach[number])
    return reach


def _add_correctness(draft: FrontierProgram, t: int, printed: bool) -> None:
    """(1b), (1c), and that nothing is computed while it is there."""
    R, S, build = draft.R, draft.S, draft.build
    for j in draft.computable(t):
        for i in draft.graph.nodes[j].dependencies:
            build.row((R[t, j], R[t, i], S[t, i]), (1, -1, -1), upper=0)  # (1b)
    for i in map(int, np.flatnonzero(S[t] != ZERO)):
        if t > draft.first_stage:
            build.row((S[t, i], R[t - 1, i], S[t - 1, i]), (1, -1, -1), upper=0)  # (1c)
        if R[t, i] != ZERO and not printed:
            build.row((R[t, i], S[t, i]), (1, 1), upper=1)


def _add_free(draft: FrontierProgram, t: int) -> None:
    """(5), linearized: a value is freed after its last reader in the stage, unless retained.

    At most one reader frees a value; none that has a later reader in the stage, and none if the
    value is retained. What the last node of a stage is sure to read needs no variable.
    """
    R, S, build = draft.R, draft.S, draft.build
    n = len(draft.graph)
    last_is_sure = build.lower[R[t, t]] == 1.0
    for i, readers in draft.readers(t).items():
        if last_is_sure and readers[-1] == t:
            continue
        columns = [build.column() for _ in readers]
        ones = [1.0] * (len(readers) + 1)
        for place, (k, column) in enumerate(zip(readers, columns, strict=True)):
            draft.free[t, i, k] = column
            build.row((column, R[t, k]), (1, -1), upper=0)
            if place:
                build.row((*columns[:place], R[t, k]), ones[: place + 1], upper=1)
        retained = S[t + 1, i] if t + 1 < n else ZERO
        build.row((*columns, retained), ones, upper=1)
        if len(columns) > 1:
            build.row((*columns, R[t, i], S[t, i]), (*ones[1:], -1, -1), upper=0)


def _add_printed_free(draft: FrontierProgram, t: int) -> None:
    """(7b) and (7c) as printed, h = (1 − R[t, k]) + S[t+1, i] + Σ of later readers' R[t, j]."""
    R, S, build = draft.R, draft.S, draft.build
    n = len(draft.graph)
    for i, readers in draft.readers(t).items():
        for place, k in enumerate(readers):
            free = draft.free[t, i, k] = build.column(integer=True)
            later = [R[t, j] for j in readers[place + 1 :]]
            retained = S[t + 1, i] if t + 1 < n else ZERO
            ones = [1.0] * (len(later) + 1)
            most = 1.0 + len(ones)  # κ, the most that h can be
            columns = (free, R[t, k], retained, *later)
            build.row(columns, (1, -1, *ones), lower=0)  # (7b)
            build.row(columns, (most, -1, *ones), upper=most - 1)  # (7c)


def _add_retained(draft: FrontierProgram, t: int, tight: bool) -> None:
    """(2): what is retained after stage t; if `tight`, beside v_t and what v_t reads."""
    graph = draft.graph
    memories = graph.memories / draft.memory_unit
    there = {t, *graph.nodes[t].dependencies} if tight else set()
    used = sum(memories[i] for i in there)
    if tight:
        used += graph.nodes[t].workspace / draft.memory_unit
    beside = [i for i in range(t + 1) if i not in there]
    columns, values = draft.S[t + 1, beside], memories[beside]
    draft.build.row(columns.tolist(), values.tolist(), upper=BUDGET - used)


def _add_memory(draft: FrontierProgram, t: int) -> None:
    """(2), (3) and (4): U[t, k] over the nodes k that the stage may compute, and its limit."""
    graph, R, build = draft.graph, draft.R, draft.build
    memories = graph.memories / draft.memory_unit
    columns = [int(column) for column in draft.S[t]]
    values = [float(memory) for memory in memories]
    for k in draft.computable(t):
        used = draft.used[t, k] = build.column(upper=BUDGET)
        terms = [-value for value in values]
        build.row((used, *columns, R[t, k]), (1, *terms, -memories[k]), 0, 0)
        if graph.nodes[k].workspace:
            workspace = graph.nodes[k].workspace / draft.memory_unit
            build.row((used, R[t, k]), (1, workspace), upper=BUDGET)
        freed = [i for i in graph.nodes[k].dependencies if (t, i, k) in draft.free]
        columns = [used, *(draft.free[t, i, k] for i in freed)]
        values = [1.0, *(-float(memories[i]) for i in freed)]
