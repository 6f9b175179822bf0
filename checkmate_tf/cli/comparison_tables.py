"""The tables of `checkmate-tf compare`, in 80 columns: who is best, all results, who has none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from rich.table import Table

from solvers import Status, format_bytes
from solvers.comparison import FAILED, Row

_WRAPPED = ("budget", "best: the quickest first")
_NUMBERS = ("overhead %", "peak", "bound %", "gap %", "s")

_EQUAL = 1e-9
"""Relative difference under which two costs are the same."""


def best_table(rows: Sequence[Row]) -> Table:
    """For every budget the solvers of least cost, the quickest first, and the highest bound."""
    table = _table("budget", "overhead %", "bound %", "best: the quickest first")
    for budget, asked in _by_budget(rows).items():
        solved = sorted((row for row in asked if row.cost is not None), key=lambda row: row.seconds)
        # A bound for one order of the nodes does not hold for another.
        bounds = [
            row.bound_overhead
            for row in asked
            if row.bound_overhead is not None and row.bound_order in ("free", row.order)
        ]
        highest = max(bounds, default=None)
        if not solved:
            none = "no schedule exists" if _is_infeasible(asked) else "no solver has a schedule"
            table.add_row(budget, "–", _number(highest), none)
            continue
        least = min(row.cost or 0.0 for row in solved)
        best = [row for row in solved if (row.cost or 0.0) <= least * (1 + _EQUAL)]
        names = ", ".join(row.solver for row in best)
        table.add_row(budget, _number(best[0].overhead), _number(highest), names)
    return table


def results_table(rows: Sequence[Row]) -> Table:
    """The rows with a schedule or a bound; overhead and bound in % of one pass."""
    table = _table("budget", "solver", "overhead %", "peak", "bound %", "gap %", "status", "s")
    for row in rows:
        if _has_result(row):
            table.add_row(
                row.budget,
                row.solver,
                _number(row.overhead),
                "–" if row.peak is None else format_bytes(row.peak),
                _number(row.bound_overhead),
                _number(row.gap),
                row.status,
                f"{row.seconds:.1f}",
            )
    return table


def without_result(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each way to have no result, at some budgets, and the solvers that it befell."""
    possible = {
        budget: asked for budget, asked in _by_budget(rows).items() if not _is_infeasible(asked)
    }
    budgets: dict[tuple[str, str], list[str]] = {}
    for budget, asked in possible.items():
        for row in asked:
            if not _has_result(row):
                status = f"{FAILED} with {row.note}" if row.status == FAILED else row.status
                budgets.setdefault((status, row.solver), []).append(budget)
    solvers: dict[tuple[str, str], list[str]] = {}
    for (status, solver), befallen in budgets.items():
        at = "" if len(befallen) == len(possible) else f" at {', '.join(befallen)}"
        solvers.setdefault((status, at), []).append(solver)
    for (status, at), names in solvers.items():
        yield f"{status}{at}: {', '.join(names)}"


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for each in headings:
        side: Literal["right", "left"] = "right" if each in _NUMBERS else "left"
        table.add_column(each, justify=side, no_wrap=each not in _WRAPPED)
    return table


def _has_result(row: Row) -> bool:
    return row.cost is not None or row.bound is not None


def _is_infeasible(rows: Sequence[Row]) -> bool:
    """Whether one of the solvers has proved that the budget of these rows is too small."""
    return any(row.status == Status.INFEASIBLE for row in rows)


def _by_budget(rows: Sequence[Row]) -> dict[str, list[Row]]:
    budgets = dict.fromkeys(row.budget for row in rows)
    return {budget: [row for row in rows if row.budget == budget] for budget in budgets}


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
