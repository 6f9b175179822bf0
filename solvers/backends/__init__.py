"""Programs that solve a `LinearModel`, exchanged by name; each is one small module."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Protocol, cast

from solvers.errors import SolverError
from solvers.linear import LinearModel, LinearResult, Vector


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


@dataclass(frozen=True)
class _Entry:
    module: str
    package: str
    extra: str


_BACKENDS = {
    "highs": _Entry("solvers.backends.highs", "highspy", "highspy"),
    "cvxpy": _Entry("solvers.backends.cvxpy", "cvxpy", "cvxpy"),
    "gurobi": _Entry("solvers.backends.gurobi", "gurobipy", "checkmate_tf[gurobi]"),
}


def backend(name: str) -> Backend:
    """The backend called `name`.

    Raises:
        SolverError: it does not exist or its package is not installed.
    """
    entry = _BACKENDS.get(name)
    if entry is None:
        raise SolverError(f"no backend {name!r}; there are: {', '.join(_BACKENDS)}")
    if importlib.util.find_spec(entry.package) is None:
        raise SolverError(
            f"backend {name!r} needs the package {entry.package}: pip install '{entry.extra}'"
        )
    return cast(Backend, importlib.import_module(entry.module).solve)


def available() -> list[str]:
    """Names of the backends whose packages are installed."""
    return [n for n, entry in _BACKENDS.items() if importlib.util.find_spec(entry.package)]
