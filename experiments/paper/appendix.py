"""Appendix A: what partitioning into stages is worth, (1) against (9), on chains of unit size."""

from __future__ import annotations

from typing import Any

from experiments.paper.cells import Cell
from experiments.paper.published import GAPS, SECONDS
from experiments.paper.settings import Settings
from experiments.paper.strategies import ask
from solvers import solve
from solvers.checkmate.formulation import build_frontier, build_unpartitioned
from solvers.graph.layer_graphs import unit_chain
from solvers.problem import Problem
from solvers.programs.optimize import optimize

_BUDGET = 4
_PUBLISHED_LAYERS = 8
_FORMS = ("partitioned", "unpartitioned")


def run(settings: Settings) -> None:
    """Gap and solve time of both forms, on chains as long as the time allows."""
    lengths = (3, 4, _PUBLISHED_LAYERS) if settings.quick else (3, 4, 5, 6, 7, 8)
    asked = [(layers, form) for layers in lengths for form in _FORMS]
    limit = settings.time_limit
    cells = [
        Cell(
            f"chain {layers} {form} relaxed",
            relaxed,
            {"layers": layers, "form": form, "time_limit": settings.patience},
        )
        for layers, form in asked
    ]
    cells += [
        Cell(
            f"chain {layers} {form} solved",
            solved,
            {"layers": layers, "form": form, "time_limit": limit},
        )
        for layers, form in asked
    ]
    cells += [
        Cell(
            f"chain {layers} optimum",
            ask,
            {
                "graph": unit_chain(layers),
                "budget": _BUDGET,
                "solver": "auto",
                "time_limit": settings.patience,
            },
        )
        for layers, _ in asked
    ]
    answers = settings.answers("appendix", cells)
    count = len(asked)
    rows = []
    for (layers, form), lp, given, best in zip(
        asked, answers[:count], answers[count : 2 * count], answers[2 * count :], strict=True
    ):
        optimum = best["cost"] if best["status"] == "optimal" else None
        is_theirs = layers == _PUBLISHED_LAYERS
        rows.append(
            {
                "chain": f"{layers} layers",
                "form": "(9) partitioned" if form == "partitioned" else "(1) unpartitioned",
                "optimum": optimum,
                "LP as printed": lp["printed"],
                "gap": optimum / lp["printed"] if optimum and lp["printed"] else None,
                "published gap": GAPS[form] if is_theirs else None,
                "LP, own constraints": lp["own"],
                "own gap": optimum / lp["own"] if optimum and lp["own"] else None,
                "status": given["status"],
                "seconds": given["seconds"],
                "published seconds": SECONDS[form] if is_theirs else None,
            }
        )
    settings.write_table("appendix", f"unit chains at budget {_BUDGET}", rows)


def relaxed(layers: int, form: str, time_limit: float) -> dict[str, float | None]:
    """The LP's optimum with (7) as printed, and with this project's constraints."""
    graph = unit_chain(layers)
    build = build_frontier if form == "partitioned" else build_unpartitioned
    found: dict[str, float | None] = {}
    for name, printed in (("printed", True), ("own", False)):
        program = build(graph, _BUDGET, printed=printed)
        result = optimize(Problem(graph, _BUDGET, time_limit), program.model.relaxed())
        solved = result.values is not None and result.bound is not None
        found[name] = program.cost(result.bound) if solved and result.bound is not None else None
    return found


def solved(layers: int, form: str, time_limit: float) -> dict[str, Any]:
    """Seconds to the optimum; the status says whether it was proved."""
    name, order = ("milp", "fixed") if form == "partitioned" else ("milp_unpartitioned", "free")
    given = solve(
        unit_chain(layers), _BUDGET, name, time_limit, order="fixed" if order == "fixed" else "free"
    )
    return {"cost": given.cost, "status": str(given.status), "seconds": round(given.seconds, 2)}
