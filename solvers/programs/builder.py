"""Builds a `LinearModel` column by column and row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from solvers.programs.linear_program import LinearModel

ABSENT = -1
"""The column of a variable that is fixed at zero and not part of the model."""


@dataclass
class LinearBuilder:
    """Collects the columns and rows of a `LinearModel`."""

    objective: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    row_lower: list[float] = field(default_factory=list)
    row_upper: list[float] = field(default_factory=list)
    row_of: list[int] = field(default_factory=list)
    column_of: list[int] = field(default_factory=list)
    value_of: list[float] = field(default_factory=list)

    def column(
        self, cost: float = 0.0, lower: float = 0.0, upper: float = 1.0, integer: bool = False
    ) -> int:
        """Add lower ≤ x ≤ upper with `cost` in the objective; its number."""
        self.objective.append(cost)
        self.lower.append(lower)
        self.upper.append(upper)
        self.integer.append(integer)
        return len(self.objective) - 1

    def row(
        self,
        columns: Sequence[int],
        values: Sequence[float],
        lower: float = -np.inf,
        upper: float = np.inf,
    ) -> None:
        """lower ≤ Σ value · column ≤ upper; an absent column is zero."""
        number = len(self.row_lower)
        self.row_lower.append(lower)
        self.row_upper.append(upper)
        for column, value in zip(columns, values, strict=True):
            if column != ABSENT and value != 0:
                self.row_of.append(number)
                self.column_of.append(column)
                self.value_of.append(value)

    def model(self) -> LinearModel:
        """What has been collected."""
        shape = (len(self.row_lower), len(self.objective))
        matrix = sp.csr_matrix((self.value_of, (self.row_of, self.column_of)), shape=shape)
        return LinearModel(
            np.array(self.objective, dtype=np.float64),
            matrix,
            np.array(self.row_lower, dtype=np.float64),
            np.array(self.row_upper, dtype=np.float64),
            np.array(self.lower, dtype=np.float64),
            np.array(self.upper, dtype=np.float64),
            np.array(self.integer, dtype=np.bool_),
        )
