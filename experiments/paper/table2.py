"""Table 2: how far each strategy is from the optimum.

The ratio is the strategy's cost over the least cost known at the same budget; of it the geometric
mean over those budgets where the strategy has a schedule. Rules count by the paper's matrices.
"""

from __future__ import annotations

import statistics
from typing import Any

from experiments.paper.published import TABLE2
from experiments.paper.settings import Settings
from experiments.paper.strategies import TITLES, cheapest_cost
from experiments.paper.sweep import Sweep, graphs, sweep


def run(settings: Settings) -> None:
    """Sweep and average."""
    names = ("VGG16",) if settings.quick else tuple(TABLE2)
    rows = []
    for name in names:
        for graph in graphs(settings, (name,)):
            rows += _rows(name, sweep(settings, graph))
    settings.write_table("table2", "cost over the optimum's, geometric mean", rows)


def _rows(name: str, swept: Sweep) -> list[dict[str, Any]]:
    proved = sum(
        (best := swept.optimum(number)) is not None and best <= swept.bound(number) * (1 + 1e-4)
        for number in range(len(swept.budgets))
    )
    rows = []
    for strategy in ("ap_sqrt", "ap_greedy", "linearized_sqrt", "linearized_greedy",
                     "griewank", "feng_huang", "rounding as published", "rounding"):  # fmt: skip
        found = ratios(swept, strategy)
        published = TABLE2[name].get("rounding" if "rounding" in strategy else strategy)
        if strategy in swept.rules or strategy in swept.solved:
            rows.append(
                {
                    "graph": swept.graph.name,
                    "strategy": TITLES.get(strategy, f"LP {strategy}"),
                    "published": published,
                    "ratio": statistics.geometric_mean(found) if found else None,
                    "at most": max(found, default=None),
                    "budgets": len(found),
                    "feasible": sum(
                        swept.optimum(number) is not None for number in range(len(swept.budgets))
                    ),
                    "proved": proved,
                }
            )
    return rows


def ratios(swept: Sweep, strategy: str) -> list[float]:
    """Cost over the optimum's at every budget where the strategy has a schedule."""
    found = []
    for number, budget in enumerate(swept.budgets):
        if strategy in swept.solved:
            cost = swept.solved[strategy][number]["cost"]
        else:
            activations = budget - swept.graph.fixed_bytes
            cost = cheapest_cost(swept.rules.get(strategy, []), activations, "matrices")
        best = swept.optimum(number)
        if cost is not None and best:
            found.append(cost / best)
    return found
