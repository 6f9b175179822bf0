"""Figure 8: rounding S* at a threshold against rounding it at random."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

from experiments.paper.cells import Cell
from experiments.paper.pictures import roundings
from experiments.paper.settings import GPU_BYTES, Settings
from experiments.paper.strategies import ask
from experiments.paper.sweep import graphs, solver_limit
from solvers import ComputationGraph, Schedule, simulate
from solvers.checkmate.lp_relaxation import relax
from solvers.graph.matrices import least_recomputation
from solvers.problem import Problem

_NETWORKS = ("VGG16", "U-Net", "MobileNet")
_EPSILON, _THRESHOLD = 0.1, 0.5


def run(settings: Settings) -> None:
    """Round at 16 GB, many times over."""
    names = ("VGG16",) if settings.quick else _NETWORKS
    samples = 20 if settings.quick else 200
    found = graphs(settings, names)
    cells = [
        Cell(
            f"{graph.name} rounded",
            rounded,
            {
                "graph": graph,
                "budget": GPU_BYTES,
                "time_limit": max(settings.patience, solver_limit(settings, graph, "lp_rounding")),
                "samples": samples,
            },
        )
        for graph in found
    ]
    cells += [
        Cell(
            f"{graph.name} {GPU_BYTES} checkmate",
            ask,
            {
                "graph": graph,
                "budget": GPU_BYTES,
                "solver": "auto",
                "time_limit": settings.time_limit,
                "options": {},
            },
        )
        for graph in found
    ]
    answers = settings.answers("fig8", cells)
    pairs = []
    for graph, answer, best in zip(
        found, answers[: len(found)], answers[len(found) :], strict=True
    ):
        if answer is None:
            settings.console.print(f"{graph.name}: its LP was not solved in time")
        else:
            pairs.append((graph, answer, best))
    if not pairs:
        return
    settings.write_table("fig8", "rounding at 16 GB", [_row(*each) for each in pairs])
    roundings(settings.output / "fig8.png", pairs)


def _row(graph: ComputationGraph, answer: dict[str, Any], best: dict[str, Any]) -> dict[str, Any]:
    costs = [each["cost"] / graph.one_pass_cost for each in answer["randomized"]]
    fixed = answer["deterministic"]
    return {
        "graph": graph.name,
        "optimum": None if best["cost"] is None else best["cost"] / graph.one_pass_cost,
        "deterministic": fixed["cost"] / graph.one_pass_cost,
        "its GB": fixed["peak"] / 1e9,
        "randomized, least": min(costs),
        "mean": statistics.mean(costs),
        "most": max(costs),
        "within 16 GB": sum(each["peak"] <= GPU_BYTES for each in answer["randomized"]),
        "of": len(costs),
    }


def rounded(
    graph: ComputationGraph, budget: int, time_limit: float, samples: int, seed: int = 0
) -> dict[str, Any] | None:
    """Cost and peak of S* rounded at 0.5, and of `samples` drawn from it; ε = 0.1 for both.

    None if the LP is not solved in time.
    """
    S = relax(Problem(graph, budget, time_limit, options={"tight": False}), _EPSILON).S
    if S is None:
        return None
    random = np.random.default_rng(seed)
    return {
        "deterministic": _completed(graph, _THRESHOLD < S),
        "randomized": [_completed(graph, random.random(S.shape) < S) for _ in range(samples)],
    }


def _completed(graph: ComputationGraph, S: Any) -> dict[str, float]:
    schedule = Schedule.from_matrices(graph, *least_recomputation(graph, S))
    simulation = simulate(graph, schedule)
    return {"cost": simulation.cost, "peak": simulation.peak}
