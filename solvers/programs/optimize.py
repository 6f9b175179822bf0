"""The road to a backend: which one a problem names, and how it is asked in the background."""

from __future__ import annotations

import atexit
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import replace

from solvers.errors import CheckmateWarning, SolverError
from solvers.problem import PROVED, Problem, Status
from solvers.programs.backends import Backend, can_stop, stoppable
from solvers.programs.linear_program import LinearModel, LinearResult, Vector

_DEFAULT = "cvxpy"
GAP = 0.9 * PROVED
"""Relative gap, unless another is asked for: enough to call the answer optimal."""

_REPORT_SECONDS = 0.2
"""Seconds between two calls of `while_waiting`."""

_GRACE = 0.5
"""Seconds after the time limit that a backend has for its answer. HiGHS does not look at its clock
in the middle of a heuristic or a round of cuts; 3 s more have been seen."""

_FAREWELL = 30.0
"""Seconds that the end of the process waits at most for a late backend. One that returns from
compiled code while Python is ending aborts the process: "terminate called", status 134."""


def chosen_backend(problem: Problem, stop: threading.Event, default: str = _DEFAULT) -> Backend:
    """The backend that `problem.options["backend"]` names, or `default`.

    Every solver gets its backend here. Once `stop` is set it answers with what it has, if it can.

    Raises:
        SolverError: it does not exist or its package is not installed.
    """
    return stoppable(_name(problem, default), stop)


def _name(problem: Problem, default: str) -> str:
    return str(problem.options.get("backend", default))


def optimize(
    problem: Problem,
    model: LinearModel,
    start: Vector | None = None,
    while_waiting: Callable[[], None] = lambda: None,
) -> LinearResult:
    """Solve `model` with the backend that `problem.options["backend"]` names, cvxpy by default.

    Options: `backend`, such as "cvxpy", "gurobi", or "cvxpy:SCIPY" for any MILP solver that
    cvxpy finds; `threads`; `gap`, relative; `fallback=True` goes on with HiGHS, and
    warns, where the backend's package or licence does not do.

    Args:
        start: a point to start from, for the backends that can use one.
        while_waiting: called a few times a second; may raise `KeyboardInterrupt`.

    Raises:
        KeyboardInterrupt: the user stopped it, and the backend cannot tell what it has found.
    """
    try:
        return _in_background(problem, model, start, while_waiting)
    except SolverError as error:
        if _name(problem, _DEFAULT) == _DEFAULT or not problem.options.get("fallback", False):
            raise
        told = CheckmateWarning("backend-replaced", f"going on with HiGHS: {error}")
        warnings.warn(told, stacklevel=2)
        by_default = replace(problem, options={**problem.options, "backend": _DEFAULT})
        return _in_background(by_default, model, start, while_waiting)


def _in_background(
    problem: Problem,
    model: LinearModel,
    start: Vector | None,
    while_waiting: Callable[[], None],
) -> LinearResult:
    """Ask in a thread of its own, since compiled solvers hear neither Ctrl-C nor the clock.

    One that is late is not waited for: its thread ends by itself, and its answer is lost.
    """
    results: list[LinearResult] = []
    errors: list[SolverError] = []
    stop = threading.Event()

    def run() -> None:
        try:
            result = chosen_backend(problem, stop)(
                model,
                time_limit=max(problem.seconds_left, 0.01),
                relative_gap=float(problem.options.get("gap", GAP)),
                start=start,
                threads=int(problem.options.get("threads", 1)),
                seed=problem.seed,
            )
            results.append(result)
        except SolverError as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive() and time.monotonic() < problem.deadline + _GRACE:
            thread.join(_REPORT_SECONDS)
            while_waiting()
    except KeyboardInterrupt:
        stop.set()
        if not can_stop(_name(problem, _DEFAULT)) or not model.integer.any():
            atexit.register(thread.join, _FAREWELL)
            raise
        thread.join()
    if thread.is_alive():
        stop.set()
        atexit.register(thread.join, _FAREWELL)
        return LinearResult(Status.TIMEOUT, None, None, None)
    if errors:
        raise errors[0]
    if not results:
        raise SolverError(
            "backend-failed", "the backend ended without an answer; its own message is above"
        )
    return results[0]
