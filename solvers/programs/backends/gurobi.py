"""Gurobi through its matrix interface, with a start, a gap and a time limit."""

from __future__ import annotations

import gurobipy as gp
import numpy as np
from gurobipy import GRB

from solvers.errors import SolverError
from solvers.problem import Status
from solvers.programs.linear_program import LinearModel, LinearResult, Vector

_LICENCE_ERRORS = (GRB.Error.NO_LICENSE, GRB.Error.SIZE_LIMIT_EXCEEDED)
_INFEASIBLE = (GRB.INFEASIBLE, GRB.INF_OR_UNBD)  # every variable is bounded


def solve(
    model: LinearModel,
    *,
    time_limit: float,
    relative_gap: float = 1e-4,
    start: Vector | None = None,
    threads: int = 1,
    seed: int = 0,
) -> LinearResult:
    """Solve `model` with Gurobi; see `solvers.programs.backends.Backend`.

    Raises:
        SolverError: the licence does not cover the model, or there is none.
    """
    parameters = {
        "OutputFlag": 0,
        "TimeLimit": time_limit,
        "MIPGap": relative_gap,
        "Threads": threads,
        "Seed": seed,
    }
    try:
        with gp.Env(params=parameters) as environment, gp.Model(env=environment) as program:
            return _optimize(program, model, start)
    except gp.GurobiError as error:
        if error.errno in _LICENCE_ERRORS:
            rows, columns = model.matrix.shape
            raise SolverError(
                "backend-licence",
                f"Gurobi's licence does not cover this model of {columns} variables and {rows} "
                f"constraints ({error}). The licence inside pip's gurobipy ends at 2,000 of each; "
                "a full one (free for academic use, from gurobi.com) goes into gurobi.lic. "
                "Without one, backend 'cvxpy' or 'highs' and solver 'cutting_planes' work at any "
                "size, and the option fallback=True goes on with HiGHS",
            ) from error
        raise SolverError("backend-failed", f"Gurobi failed: {error}") from error


def _optimize(program: gp.Model, model: LinearModel, start: Vector | None) -> LinearResult:
    kinds = np.where(model.integer, GRB.INTEGER, GRB.CONTINUOUS)
    columns = len(model.objective)
    x = program.addMVar(columns, lb=model.lower, ub=model.upper, obj=model.objective, vtype=kinds)
    sides = (model.row_upper, model.row_upper, model.row_lower)
    for rows, sense, side in zip(model.sides(), "=<>", sides, strict=True):
        if rows.any():
            program.addMConstr(model.matrix[rows], x, sense, side[rows])
    if start is not None and model.integer.any():
        x.setAttr(GRB.Attr.Start, start)
    program.optimize()
    if program.Status in _INFEASIBLE:
        return LinearResult(Status.INFEASIBLE, None, None, None)
    optimal = program.Status == GRB.OPTIMAL
    proved = _bound(program, optimal)
    if program.SolCount == 0:
        return LinearResult(Status.TIMEOUT, None, None, proved)
    status = Status.OPTIMAL if optimal else Status.FEASIBLE
    return LinearResult(status, np.asarray(x.X), float(program.ObjVal), proved)


def _bound(program: gp.Model, optimal: bool) -> float | None:
    """The proved lower bound; a linear program has one when it is solved and not before."""
    if not program.IsMIP:
        return float(program.ObjVal) if optimal else None
    bound = float(program.ObjBound)
    return bound if abs(bound) < GRB.INFINITY else None
