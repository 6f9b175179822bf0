"""A mixed-integer linear program as sparse matrices: one form for every backend."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.problem import Status

Vector = NDArray[np.float64]
Rows = NDArray[np.bool_]


@dataclass(frozen=True)
class LinearModel:
    """min objective · x  subject to  row_lower ≤ matrix x ≤ row_upper,  lower ≤ x ≤ upper.

    Attributes:
        objective: shape (columns,).
        matrix: shape (rows, columns), CSR.
        row_lower, row_upper: shape (rows,); ±inf where there is no bound.
        lower, upper: shape (columns,).
        integer: shape (columns,), which variables must be whole numbers.
    """

    objective: Vector
    matrix: sp.csr_matrix
    row_lower: Vector
    row_upper: Vector
    lower: Vector
    upper: Vector
    integer: NDArray[np.bool_]

    def relaxed(self) -> LinearModel:
        """The same program without integrality."""
        return replace(self, integer=np.zeros_like(self.integer))

    def sides(self) -> tuple[Rows, Rows, Rows]:
        """Which rows are equalities, and which others are bounded from above, and from below."""
        equal = self.row_lower == self.row_upper
        return equal, ~equal & np.isfinite(self.row_upper), ~equal & np.isfinite(self.row_lower)


@dataclass(frozen=True)
class LinearResult:
    """A backend's answer.

    Attributes:
        status: `OPTIMAL` within the gap asked for, `FEASIBLE` with an incumbent only,
            `INFEASIBLE` proved, `TIMEOUT` with neither.
        values: the best point found, shape (columns,), or None.
        objective: its value, or None.
        bound: a proved lower bound on the optimum, or None.
    """

    status: Status
    values: Vector | None
    objective: float | None
    bound: float | None
