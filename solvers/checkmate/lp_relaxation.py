"""The LP relaxation of equation (9): a lower bound, and what two-phase rounding starts from.

(2)–(5) limit the memory at every node that a stage may compute, which is most of the program, and
few of these limits bind. So the LP begins with what is retained from stage to stage. Only stages in
which its optimum is over budget are given their FREE and U; then it is solved again. What comes out
is a point of the whole relaxation: its optimum, or by `tight` rows, which every schedule keeps, one
with a higher bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from solvers.checkmate.formulation import (
    BUDGET,
    FrontierProgram,
    OutOfTimeError,
    build_frontier,
    fits_in_memory,
)
from solvers.checkmate.milp import EXPRESSIBLE
from solvers.cutting_planes.fixed_order import solve_cutting_planes
from solvers.graph import input_order_peak
from solvers.problem import Problem, Solution, answer
from solvers.programs.linear_program import Vector
from solvers.programs.optimize import optimize

_SHARE = 0.5
"""Share of the time that the LP gets before another bound is asked for."""

_TOLERANCE = 1e-5
"""Share of the budget by which a backend's point may be over it."""


@dataclass(frozen=True)
class LpOptimum:
    """The optimum of the LP relaxation.

    Attributes:
        S: S*, of shape (n, n), or None where the time was over before.
        bound: as a cost; it holds even where the time was over while stages were being added.
        watched: the stages whose memory is limited at every node.
    """

    S: Vector | None
    bound: float | None
    watched: frozenset[int] = frozenset()


def relax(
    problem: Problem,
    epsilon: float = 0.0,
    watched: frozenset[int] = frozenset(),
    while_waiting: Callable[[], None] = lambda: None,
) -> LpOptimum:
    """Solve the LP relaxation of (9) with (1 − ε) of the memory.

    The bound is proved by the multipliers of the LP, so it contains no tolerance of the backend. It
    holds for `problem` if ε = 0.

    Args:
        watched: stages to begin with, such as those of another ε.
        while_waiting: called a few times a second.

    Option: `tight=False` for the relaxation as published.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> relax(Problem(unit_chain(8), 5)).bound
        22.0
    """
    if not fits_in_memory(problem.graph):
        return LpOptimum(None, None)
    memory = (1 - epsilon) * problem.activation_budget
    tight = bool(problem.options.get("tight", True))
    best: float | None = None

    def wait() -> None:
        while_waiting()
        problem.report(None, best, f"LP relaxation, ε = {epsilon}")

    while True:
        try:
            program = build_frontier(
                problem.graph, memory, watched=watched, tight=tight, deadline=problem.deadline
            )
        except OutOfTimeError:
            return LpOptimum(None, best, watched)
        result = optimize(problem, program.model.relaxed(), while_waiting=wait)
        bound = program.lower_bound(result.bound)
        best = max((each for each in (best, bound) if each is not None), default=None)
        if result.values is None:
            return LpOptimum(None, best, watched)
        R, S = program.matrices(result.values)
        over = {
            t for t in range(program.first_stage, len(problem.graph)) if _over(program, R, S, t)
        }
        if over <= watched:
            return LpOptimum(S, best, watched)
        watched |= over


def _over(program: FrontierProgram, R: Vector, S: Vector, t: int) -> bool:
    """Whether stage t exceeds the budget at any node, whatever FREE is; (2)–(5).

    FREE[t, i, k] are what frees most of v_i earliest: within R[t, k], and such that with them no
    more is freed before a later reader than that reader leaves, nor in all than is there and is
    not retained.
    """
    graph = program.graph
    memories = graph.memories / program.memory_unit
    workspaces = graph.workspaces / program.memory_unit
    retained = S[t + 1] if t + 1 < len(graph) else np.zeros(len(graph))
    freed = np.zeros(len(graph))
    for i, readers in program.readers(t).items():
        most = min(1 - retained[i], R[t, i] + S[t, i])
        room = np.minimum.accumulate(np.append(1 - R[t, readers[1:]], most)[::-1])[::-1]
        so_far = 0.0
        for k, left in zip(readers, room, strict=True):
            now = max(so_far, min(so_far + R[t, k], left))
            freed[k] += (now - so_far) * memories[i]
            so_far = now
    nodes = program.computable(t)
    there = float(memories @ S[t]) + np.cumsum(memories[nodes] * R[t, nodes])
    there[1:] -= np.cumsum(freed[nodes])[:-1]
    used = there + workspaces[nodes] * R[t, nodes]
    return bool(used.max() > BUDGET * (1 + _TOLERANCE))


def solve_lp_bound(problem: Problem) -> Solution:
    """The optimum of the LP relaxation of (9) as a lower bound; no schedule.

    Option: `tight=False` for the relaxation as published, which is lower. Where the LP takes more
    than half of the time, the bound of `cutting_planes` is given instead.
    """
    graph, name = problem.graph, "lp_bound"
    if input_order_peak(graph) <= problem.budget:
        return answer(problem, name, None, bound=graph.one_pass_cost, note="a bound only")
    if problem.is_hopeless:
        return answer(problem, name, None)
    optimum = relax(replace(problem, time_limit=_SHARE * problem.time_limit))
    if optimum.S is not None:
        return answer(
            problem, name, None, bound=optimum.bound, among=EXPRESSIBLE, note="a bound only"
        )
    bound = solve_cutting_planes(replace(problem, options={})).bound
    note = "a bound only; the LP took too long, this one is of cutting_planes"
    return answer(problem, name, None, bound=bound, note=note)
