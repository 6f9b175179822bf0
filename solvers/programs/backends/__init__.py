"""The backends that solve a `LinearModel`, each a module of its own, found by name."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import threading
from typing import Any, Protocol, cast

from solvers.errors import SolverError
from solvers.programs.linear_program import LinearModel, LinearResult, Vector


class Backend(Protocol):
    """What every backend module offers as its function `solve`."""

    def __call__(
        self,
        model: LinearModel,
        *,
        time_limit: float,
        relative_gap: float = 1e-4,
        start: Vector | None = None,
        threads: int = 1,
        seed: int = 0,
    ) -> LinearResult:
        """Solve `model` within `time_limit` seconds, from the point `start` where given."""


_BACKENDS = {  # by module of this folder: the package that it needs, and what pip calls that
    "highs": ("highspy", "highspy"),
    "cvxpy": ("cvxpy", "cvxpy"),
    "gurobi": ("gurobipy", "checkmate_tf[gurobi]"),
}


def backend(name: str) -> Backend:
    """The backend called `name`; "cvxpy:SCIPY" is any MILP solver that cvxpy finds.

    Raises:
        SolverError: it does not exist or its package is not installed.

    Example:
        >>> from solvers.checkmate.formulation import build_frontier
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> model = build_frontier(unit_chain(2), 4).model
        >>> str(backend("cvxpy:SCIPY")(model, time_limit=10).status)
        'optimal'
    """
    check_name(name)
    name, _, solver = str(name).partition(":")
    package, extra = _BACKENDS[name]
    if importlib.util.find_spec(package) is None:
        raise SolverError(
            "backend-not-installed",
            f"backend {name!r} needs the package {package}: pip install '{extra}'",
        )
    module = importlib.import_module(f"{__name__}.{name}")
    if solver:
        module.check_solver(solver)
        return cast(Backend, functools.partial(module.solve, solver=solver))
    return cast(Backend, module.solve)


def check_name(name: str) -> None:
    """Refuse what is no backend's name, whatever is installed.

    Raises:
        SolverError: there is no such backend; the message lists those that there are.
    """
    name, _, solver = str(name).partition(":")
    if solver and name != "cvxpy":
        raise SolverError(
            "backend-unknown", f"backend '{name}:{solver}': only cvxpy has solvers to choose among"
        )
    if name not in _BACKENDS:
        raise SolverError(
            "backend-unknown", f"no backend {name!r}; there are: {', '.join(_BACKENDS)}"
        )


def backend_names() -> tuple[list[str], list[str]]:
    """The names of the backends whose packages are installed, and of the others.

    Example:
        >>> "highs" in backend_names()[0]
        True
    """
    names: tuple[list[str], list[str]] = ([], [])
    for name, (package, _) in _BACKENDS.items():
        is_there = importlib.util.find_spec(package) is not None
        names[not is_there].append(name)
        if name == "cvxpy" and is_there:
            module = importlib.import_module(f"{__name__}.{name}")
            names[0].extend(f"{name}:{solver}" for solver in module.found_solvers())
            names[1].extend(f"{name}:{solver}" for solver in module.missing_solvers())
    return names


def stoppable(name: str, stop: threading.Event) -> Backend:
    """The backend called `name`, which answers with what it has once `stop` is set, if it can.

    HiGHS, called directly, can; others end at their time limit.

    Raises:
        SolverError: as `backend`.
    """
    solve: Any = backend(name)
    return cast(Backend, functools.partial(solve, stop=stop) if can_stop(name) else solve)


def can_stop(name: str) -> bool:
    """Whether the backend called `name` answers with what it has when it is told to stop."""
    return name == "highs"
