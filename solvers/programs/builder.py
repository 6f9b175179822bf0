"""Builds a `LinearModel` column by column and row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.programs.linear_program import LinearModel, Vector

Columns = NDArray[np.int64]
"""Numbers of columns, or `ZERO` and `ONE` in their place."""

ZERO, ONE = -1, -2
"""In place of a column: the variable is this constant and no part of the model."""


@dataclass
class LinearBuilder:
    """Collects the columns and rows of a `LinearModel`.

    Example:
        >>> build = LinearBuilder()
        >>> x, y = build.column(cost=1.0), build.column(cost=2.0)
        >>> build.row((x, y, ONE), (1.0, 1.0, 1.0), lower=2.0)  # x + y + 1 ≥ 2
        >>> build.model().row_lower.tolist()
        [1.0]
    """

    objective: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    row_lower: list[float] = field(default_factory=list)
    row_upper: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    columns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def column(
        self, cost: float = 0.0, lower: float = 0.0, upper: float = 1.0, integer: bool = False
    ) -> int:
        """Add lower ≤ x ≤ upper with `cost` in the objective; its number."""
        self.objective.append(cost)
        self.lower.append(lower)
        self.upper.append(upper)
        self.integer.append(integer)
        return len(self.objective) - 1

    def binaries(self, costs: Vector) -> Columns:
        """Add a variable that is 0 or 1 for each of `costs`; their numbers."""
        first, count = len(self.objective), len(costs)
        self.objective += costs.tolist()
        self.lower += [0.0] * count
        self.upper += [1.0] * count
        self.integer += [True] * count
        return np.arange(first, first + count)

    def row(
        self,
        columns: Sequence[int],
        values: Sequence[float],
        lower: float = -np.inf,
        upper: float = np.inf,
    ) -> None:
        """Add lower ≤ Σ value · column ≤ upper; constants go to the sides."""
        for column, value in zip(columns, values, strict=True):
            if column == ONE:
                lower -= value
                upper -= value
            elif column != ZERO and value != 0:
                self.columns.append(column)
                self.values.append(value)
        self.row_lower.append(lower)
        self.row_upper.append(upper)
        self.starts.append(len(self.columns))

    def at_most(self, columns: Sequence[int], values: Sequence[float], upper: float) -> None:
        """Add Σ value · column ≤ upper, unless that holds for all columns between 0 and 1."""
        self.row(columns, values, upper=upper)
        start = self.starts[-2]
        if sum([value for value in self.values[start:] if value > 0]) <= self.row_upper[-1]:
            del self.columns[start:], self.values[start:], self.starts[-1]
            del self.row_lower[-1], self.row_upper[-1]

    def model(self) -> LinearModel:
        """What has been collected."""
        shape = (len(self.row_lower), len(self.objective))
        values = np.array(self.values, dtype=np.float64)
        matrix = sp.csr_matrix((values, self.columns, self.starts), shape=shape)
        matrix.sum_duplicates()  # sorts each row's columns, too
        return LinearModel(
            np.array(self.objective, dtype=np.float64),
            matrix,
            np.array(self.row_lower, dtype=np.float64),
            np.array(self.row_upper, dtype=np.float64),
            np.array(self.lower, dtype=np.float64),
            np.array(self.upper, dtype=np.float64),
            np.array(self.integer, dtype=np.bool_),
        )
