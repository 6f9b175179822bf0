"""HiGHS, called directly: the fastest open backend, and the only one asked for by default."""

from __future__ import annotations

import math
import threading
from typing import Any

import highspy
import numpy as np

from solvers.errors import SolverError
from solvers.problem import Status
from solvers.programs.linear_program import LinearModel, LinearResult, Vector

_STATUS = highspy.HighsModelStatus


def solve(
    model: LinearModel,
    *,
    time_limit: float,
    relative_gap: float = 1e-4,
    start: Vector | None = None,
    threads: int = 1,
    seed: int = 0,
    stop: threading.Event | None = None,
) -> LinearResult:
    """Solve `model` with HiGHS; see `solvers.programs.backends.Backend`.

    Args:
        stop: once it is set, by another thread, the answer is what has been found by then.
    """
    program: Any = _Silent()  # type: ignore[no-untyped-call]
    options = {
        "output_flag": False,
        "time_limit": max(0.01, time_limit),
        "mip_rel_gap": relative_gap,
        "threads": threads,
        "random_seed": seed,
    }
    for name, value in options.items():
        program.setOptionValue(name, value)
    if program.passModel(_program(model)) == highspy.HighsStatus.kError:
        raise SolverError(
            "backend-refuses-model",
            "HiGHS does not accept the model: a coefficient is not a finite number",
        )
    if start is not None:
        point = highspy.HighsSolution()
        point.col_value = start.tolist()
        program.setSolution(point)
    _run(program, stop or threading.Event())
    return _result(program, model)


class _Silent(highspy.Highs):
    """HiGHS that prints nothing: from 1.16 on it greets while it is constructed."""

    def enableCallbacks(self) -> None:  # noqa: N802
        """The first call of its constructor."""
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()  # type: ignore[no-untyped-call]


def _run(program: Any, stop: threading.Event) -> None:
    """Run in a thread of its own: Python cannot be interrupted while it is inside HiGHS."""
    program.HandleUserInterrupt = True  # makes HiGHS look for `cancelSolve`
    worker = threading.Thread(target=program.run, daemon=True)
    worker.start()
    try:
        while worker.is_alive() and not stop.is_set():
            worker.join(0.02)
    finally:
        if worker.is_alive():
            program.cancelSolve()
            worker.join()


def _program(model: LinearModel) -> highspy.HighsLp:
    rows, columns = model.matrix.shape
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = columns, rows
    program.col_cost_ = model.objective
    program.col_lower_, program.col_upper_ = model.lower, model.upper
    program.row_lower_, program.row_upper_ = model.row_lower, model.row_upper
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.num_col_, program.a_matrix_.num_row_ = columns, rows
    program.a_matrix_.start_ = model.matrix.indptr
    program.a_matrix_.index_ = model.matrix.indices
    program.a_matrix_.value_ = model.matrix.data
    if model.integer.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        program.integrality_ = [kinds[bool(each)] for each in model.integer]
    return program


def _result(program: highspy.Highs, model: LinearModel) -> LinearResult:
    status = program.getModelStatus()
    if status == _STATUS.kInfeasible:
        return LinearResult(Status.INFEASIBLE, None, None, None)
    info = program.getInfo()
    is_optimal = status == _STATUS.kOptimal
    if model.integer.any():
        bound = float(info.mip_dual_bound)
    else:
        bound = float(info.objective_function_value) if is_optimal else -math.inf
    known_bound = bound if math.isfinite(bound) else None
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return LinearResult(Status.TIMEOUT, None, None, known_bound)
    values = np.array(program.getSolution().col_value, dtype=np.float64)
    return LinearResult(
        Status.OPTIMAL if is_optimal else Status.FEASIBLE,
        values,
        float(info.objective_function_value),
        known_bound,
    )
