"""Any MILP solver that cvxpy finds, HiGHS by default; the model goes over as one `A @ x`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.reductions.solvers.defines import INSTALLED_MI_SOLVERS

from solvers.errors import SolverError
from solvers.problem import Status
from solvers.programs.certificates import dual_bound, satisfies
from solvers.programs.linear_program import LinearModel, LinearResult, Vector

_LIMITS = {
    # solver: seconds, relative gap, threads and seed in its own words, as far as it has any
    "HIGHS": ("time_limit", "mip_rel_gap", "threads", "random_seed"),
    "GUROBI": ("TimeLimit", "MIPGap", "Threads", "Seed"),
    "SCIPY": ("time_limit", "mip_rel_gap"),
    "SCIP": ("limits/time", "limits/gap"),
    "CBC": ("maximumSeconds", "allowableFractionGap", "numberThreads"),
    "GLPK_MI": ("tm_lim", "mip_gap"),
}
_TOGETHER = {"SCIPY": "scipy_options", "SCIP": "scip_params"}
"""The option under which a solver has them all."""


def solve(
    model: LinearModel,
    *,
    time_limit: float,
    relative_gap: float = 1e-4,
    start: Vector | None = None,
    threads: int = 1,
    seed: int = 0,
    solver: str = "HIGHS",
) -> LinearResult:
    """Solve `model` with the solver that cvxpy calls `solver`; see `backends.Backend`.

    Args:
        start: not used, since cvxpy hands no starting point to its MILP solvers.

    Raises:
        SolverError: cvxpy does not find that solver.
    """
    check_solver(solver)
    name = solver.upper()
    seconds = math.ceil(1000 * time_limit) if name == "GLPK_MI" else time_limit  # its are 1/1000
    values = (seconds, relative_gap, threads, seed)
    limits: dict[str, Any] = dict(zip(_LIMITS.get(name, ()), values, strict=False))
    if name in _TOGETHER:
        limits = {_TOGETHER[name]: limits}
    x: Any = cp.Variable(
        len(model.objective),
        bounds=[model.lower, model.upper],
        integer=[np.flatnonzero(model.integer)] if model.integer.any() else False,
    )
    constraints = _rows(model, x)
    question: Any = cp.Problem(cp.Minimize(model.objective @ x), constraints)
    # As `question.solve`, which warns of what a time limit leaves inexact. Filters of warnings
    # belong to the whole process: a thread that outlives its time must not put them back.
    try:
        data, chain, inverse = question.get_problem_data(name, solver_opts=limits)
        solution = chain.invert(chain.solve_via_data(question, data, solver_opts=limits), inverse)
    except cp.SolverError:
        return LinearResult(Status.TIMEOUT, None, None, None)
    if solution.status in cp.settings.ERROR:  # it ended without a point
        return LinearResult(Status.TIMEOUT, None, None, None)
    question.unpack(solution)
    if question.status in (cp.INFEASIBLE, cp.settings.INFEASIBLE_OR_UNBOUNDED):
        return LinearResult(Status.INFEASIBLE, None, None, None)
    optimal = question.status == cp.OPTIMAL
    whole = model.integer.any()
    bound = _told_bound(solution) if whole else _proved_bound(model, constraints)
    values = x.value
    if values is None or not satisfies(model, values):
        return LinearResult(Status.TIMEOUT, None, None, bound)
    objective = float(model.objective @ values)
    if bound is None and optimal:
        bound = objective - relative_gap * abs(objective)
    return LinearResult(Status.OPTIMAL if optimal else Status.FEASIBLE, values, objective, bound)


def check_solver(solver: str) -> None:
    """Refuse a solver that cvxpy does not find.

    Raises:
        SolverError: the message lists those that it finds.
    """
    if solver.upper() not in found_solvers():
        raise SolverError(
            "backend-unknown",
            f"cvxpy finds no MILP solver {solver!r}; it finds: {', '.join(found_solvers())}",
        )


def found_solvers() -> tuple[str, ...]:
    """The solvers of integer programs that cvxpy finds, as it calls them."""
    return tuple(INSTALLED_MI_SOLVERS)


def missing_solvers() -> tuple[str, ...]:
    """Those that it would find if they were installed."""
    return tuple(each for each in _LIMITS if each not in INSTALLED_MI_SOLVERS)


def _rows(model: LinearModel, x: Any) -> list[Any]:
    """The rows of a model as cvxpy has them: equalities, and `A @ x <= b` for the others."""
    equal, above, below = model.sides()
    A = sp.vstack([model.matrix[above], -model.matrix[below]], format="csr")
    b = np.concatenate([model.row_upper[above], -model.row_lower[below]])
    return [model.matrix[equal] @ x == model.row_upper[equal], A @ x <= b]


def _proved_bound(model: LinearModel, constraints: list[Any]) -> float | None:
    """What the multipliers of the rows prove, in the signs of `certificates.dual_bound`."""
    equality, inequality = (each.dual_value for each in constraints)
    if equality is None or inequality is None:
        return None
    equal, above, below = model.sides()
    duals = np.zeros(len(model.row_lower))
    at_most = np.maximum(np.atleast_1d(inequality), 0.0)
    duals[equal] = -np.atleast_1d(equality)
    duals[above] -= at_most[: above.sum()]
    duals[below] += at_most[above.sum() :]
    return dual_bound(model, duals)


def _told_bound(solution: Any) -> float | None:
    """The lower bound that the solver itself tells, if it does."""
    extra = solution.attr.get(cp.settings.EXTRA_STATS)
    found = extra if isinstance(extra, Mapping) else {}
    bound = found.get("mip_dual_bound", getattr(extra, "mip_dual_bound", None))
    return float(bound) if bound is not None and math.isfinite(bound) else None
