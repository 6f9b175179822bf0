"""Figure 7: what each strategy computes in which stage, VGG19 at its largest batch in 16 GB."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.paper.cells import Cell
from experiments.paper.fig6 import largest_by_search, most_cost
from experiments.paper.pictures import matrices_in_black
from experiments.paper.settings import GPU_BYTES, Settings
from experiments.paper.strategies import RULES, TITLES, rules_for
from solvers import ComputationGraph, Schedule, simulate, solve
from solvers.graph.matrices import matrix_peak

_SOLVERS = {"rounding": "lp_rounding", "checkmate": "auto"}


def run(settings: Settings) -> None:
    """Choose, draw, and say how often each strategy computes."""
    graph = settings.network("VGG19")
    search = Cell(
        "VGG19 largest batch",
        largest_by_search,
        {"graph": graph, "time_limit": settings.patience},
    )
    batch = settings.answers("fig7", [search])[0]["largest"]
    cells = [
        Cell(f"R {rule}", rule_steps, {"graph": graph, "rule": rule}) for rule in rules_for(graph)
    ]
    for name, solver in _SOLVERS.items():
        asked = {
            "graph": graph, "solver": solver, "batch": batch, "time_limit": settings.time_limit,
        }  # fmt: skip
        cells.append(Cell(f"R {name} {batch}", solved_steps, asked))
    names = [*rules_for(graph), *_SOLVERS]
    answers = settings.answers("fig7", cells)
    rows, pictures = [], {}
    for name, answer in zip(names, answers, strict=True):
        schedule = Schedule(answer["steps"])
        R, _ = schedule.to_matrices(graph)
        room = GPU_BYTES - graph.fixed_bytes
        peak = simulate(graph, schedule).peak - graph.fixed_bytes
        pictures[f"{TITLES[name]}, batch {room // peak}"] = np.asarray(R)
        rows.append(
            {
                "strategy": TITLES[name],
                "largest batch": room // peak,
                "computations": int(R.sum()),
                "nodes": len(graph),
                "cost over one pass": simulate(graph, schedule).cost / graph.one_pass_cost,
            }
        )
    settings.write_table("fig7", "VGG19 schedules", rows)
    matrices_in_black(settings.output / "fig7.png", pictures)


def rule_steps(graph: ComputationGraph, rule: str) -> dict[str, Any]:
    """The leanest of a rule's plans that cost at most an extra forward pass, or of all."""
    found = list(RULES[rule](graph))
    schedules = {place: Schedule.from_matrices(graph, *each) for place, each in enumerate(found)}
    limit = most_cost(graph)
    cheap = [each for each in schedules if simulate(graph, schedules[each]).cost <= limit]
    leanest = min(cheap or schedules, key=lambda each: matrix_peak(graph, *found[each]))
    return {"steps": list(schedules[leanest].steps)}


def solved_steps(
    graph: ComputationGraph, solver: str, batch: int, time_limit: float
) -> dict[str, Any]:
    """A solver's schedule at a batch."""
    budget = graph.fixed_bytes + (GPU_BYTES - graph.fixed_bytes) // batch
    answer = solve(graph, budget, solver, time_limit, order="fixed")
    steps = answer.schedule.steps if answer.schedule else range(len(graph))
    return {"steps": list(steps)}
