"""Checks of a linear program's answer that need no trust in the program that gave it."""

from __future__ import annotations

import numpy as np

from solvers.programs.linear_program import LinearModel, Vector

_TOLERANCE = 1e-5


def satisfies(model: LinearModel, values: Vector) -> bool:
    """Whether a point is within the bounds, rows and integrality of `model`, up to 1e-5."""
    rows = model.matrix @ values
    whole = values[model.integer]
    return bool(
        (values >= model.lower - _TOLERANCE).all()
        and (values <= model.upper + _TOLERANCE).all()
        and (rows >= model.row_lower - _TOLERANCE).all()
        and (rows <= model.row_upper + _TOLERANCE).all()
        and (np.abs(whole - np.round(whole)) <= _TOLERANCE).all()
    )


def dual_bound(model: LinearModel, duals: Vector) -> float | None:
    """The lower bound on the relaxed `model` that any row multipliers prove; None if none.

    min c·x ≥ Σ_r min(y_r·row_lower, y_r·row_upper side) + Σ_j min over [lower, upper] of
    (c − yᵀA)_j x_j for every y (Neumaier and Shcherbina, 2004), whatever tolerance y came with.

    Args:
        duals: shape (rows,), positive where `row_lower` binds and negative where `row_upper`.
    """
    y = np.where((duals > 0) & ~np.isfinite(model.row_lower), 0.0, duals)
    y = np.where((y < 0) & ~np.isfinite(model.row_upper), 0.0, y)
    sides = np.where(y > 0, model.row_lower, model.row_upper)
    rows = np.multiply(y, sides, out=np.zeros_like(y), where=y != 0)
    reduced = model.objective - model.matrix.T @ y
    ends = np.where(reduced > 0, model.lower, model.upper)
    columns = np.multiply(reduced, ends, out=np.zeros_like(reduced), where=reduced != 0)
    bound = float(rows.sum() + columns.sum())
    return bound if np.isfinite(bound) else None
