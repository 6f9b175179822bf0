"""Costs over a range of budgets, for one graph: what figure 5 draws and table 2 averages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiments.paper.cells import Cell
from experiments.paper.settings import GPU_BYTES, Settings
from experiments.paper.strategies import ask, plans, rules_for
from solvers import ComputationGraph
from solvers.graph.bounds import least_need

BATCHES = {"VGG16": 256, "VGG19": 256, "MobileNet": 512, "U-Net": 32, "ResNet50": 256}
"""Those of figure 5 and table 2."""

AS_PUBLISHED = {
    "rounding": "deterministic", "epsilons": (0.1,), "thresholds": (0.5,), "repair": False,
    "tight": False,
}  # fmt: skip
"""Options of two-phase rounding as the paper describes it."""

_LARGE = 100
"""Nodes beyond which a curve has half as many budgets, and two-phase rounding has four times as
long; its own LP bounds are enough there.
"""

_SOLVERS: dict[str, tuple[str, dict[str, Any]]] = {
    "checkmate": ("auto", {}),
    "rounding": ("lp_rounding", {}),
    "rounding as published": ("lp_rounding", AS_PUBLISHED),
    "bound": ("lp_bound", {}),
}


@dataclass(frozen=True)
class Sweep:
    """One graph under every strategy.

    Attributes:
        budgets: bytes, fixed ones included, ascending.
        rules: every rule's plans; see `experiments.paper.strategies`.
        solved: what each solver answered at every budget.
    """

    graph: ComputationGraph
    budgets: list[int]
    rules: dict[str, list[dict[str, float]]]
    solved: dict[str, list[dict[str, Any]]]

    def optimum(self, number: int) -> float | None:
        """The least cost known at a budget."""
        kept = [answers[number]["cost"] for answers in self.solved.values()]
        return min((each for each in kept if each is not None), default=None)

    def bound(self, number: int) -> float:
        """The best lower bound at a budget; one pass holds for all."""
        known: list[float] = [self.graph.one_pass_cost]
        for answers in self.solved.values():
            if answers[number]["bound"] is not None:
                known.append(answers[number]["bound"])
        return max(known)


def graphs(settings: Settings, names: tuple[str, ...]) -> list[ComputationGraph]:
    """The networks at the paper's batches, and the authors' profiles where they are there."""
    found = []
    for name in names:
        found.append(settings.network(name, BATCHES[name]))
        theirs = settings.authors(name)
        if theirs is not None:
            found.append(theirs)
    return found


def sweep(settings: Settings, graph: ComputationGraph) -> Sweep:
    """Put every budget to every strategy."""
    rules = rules_for(graph)
    rule_cells = [
        Cell(f"{graph.name} {each}", plans, {"graph": graph, "rule": each}) for each in rules
    ]
    by_rule = dict(zip(rules, settings.answers(graph.name, rule_cells), strict=True))
    points = settings.points if len(graph) <= _LARGE else max(2, settings.points // 2)
    budgets = _budgets(graph, by_rule["checkpoint_all"][0]["matrices"], points)
    solvers = {name: each for name, each in _SOLVERS.items() if _suits(graph, name)}
    cells = [
        Cell(
            f"{graph.name} {budget} {name}",
            ask,
            {
                "graph": graph,
                "budget": budget,
                "solver": solver,
                "time_limit": solver_limit(settings, graph, solver),
                "options": options,
            },
        )
        for name, (solver, options) in solvers.items()
        for budget in budgets
    ]
    answers = settings.answers(graph.name, cells)
    count = len(budgets)
    solved = {
        name: answers[count * place : count * (place + 1)] for place, name in enumerate(solvers)
    }
    return Sweep(graph, budgets, by_rule, solved)


def _suits(graph: ComputationGraph, name: str) -> bool:
    """Whether a solver is asked on a graph of this size."""
    return len(graph) <= _LARGE or name != "bound"


def solver_limit(settings: Settings, graph: ComputationGraph, solver: str) -> float:
    """Seconds for a solver; the LP of a large graph gets four times as many."""
    waits = len(graph) > _LARGE and solver.startswith("lp")
    return (4 if waits else 1) * settings.time_limit


def _budgets(graph: ComputationGraph, most: float, points: int) -> list[int]:
    """Evenly from the largest single step to what keeping all takes, and 16 GB if between."""
    least = least_need(graph)
    budgets = {
        graph.fixed_bytes + int(least + (most - least) * number / points)
        for number in range(points + 1)
    }
    if graph.fixed_bytes + least < GPU_BYTES < graph.fixed_bytes + most:
        budgets.add(GPU_BYTES)
    return sorted(budgets)
