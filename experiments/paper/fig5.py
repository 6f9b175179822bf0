"""Figure 5: overhead against budget under every strategy, with the bound below the optimum."""

from __future__ import annotations

from typing import Any

from experiments.paper.pictures import overheads
from experiments.paper.published import FIG5_SPEEDUPS
from experiments.paper.settings import GPU_BYTES, Settings
from experiments.paper.strategies import RULES, TITLES, cheapest_cost
from experiments.paper.sweep import Sweep, graphs, sweep

_NETWORKS = ("VGG16", "U-Net", "MobileNet")


def run(settings: Settings) -> None:
    """Sweep, tabulate and draw; then the two speedups that the text states."""
    if settings.graphs is None:
        settings.console.print("fig5: no --graphs FOLDER, so not on the authors' profiles")
    names = ("VGG16",) if settings.quick else _NETWORKS
    swept = [sweep(settings, graph) for graph in graphs(settings, names)]
    rows = [row for each in swept for row in _rows(each)]
    settings.write_table("fig5", "overhead over one pass, %", rows)
    overheads(settings.output / "fig5.png", swept)
    speedups = [row for each in swept for row in _speedups(each)]
    if speedups:
        settings.write_table("fig5_speedups", "times the optimum, U-Net at 16 GB", speedups)


def _rows(swept: Sweep) -> list[dict[str, Any]]:
    graph = swept.graph

    def percent(cost: float | None) -> float | None:
        return None if cost is None else 100 * (cost / graph.one_pass_cost - 1)

    rows = []
    for number, budget in enumerate(swept.budgets):
        activations = budget - graph.fixed_bytes
        row: dict[str, Any] = {"graph": graph.name, "GB": budget / 1e9}
        for rule in RULES:
            found = swept.rules.get(rule, [])
            row[TITLES[rule]] = percent(cheapest_cost(found, activations, "matrices"))
            row[f"{TITLES[rule]}, simulator"] = percent(
                cheapest_cost(found, activations, "simulator")
            )
        for name in ("rounding as published", "rounding"):
            answers = swept.solved.get(name)
            row[f"LP {name}"] = percent(answers[number]["cost"]) if answers else None
        row["optimum"] = percent(swept.optimum(number))
        row["bound"] = percent(swept.bound(number))
        rows.append(row)
    return rows


def _speedups(swept: Sweep) -> list[dict[str, Any]]:
    """How many times as long as the optimum a step takes at 16 GB."""
    if not swept.graph.name.startswith("U-Net") or GPU_BYTES not in swept.budgets:
        return []
    best = swept.optimum(swept.budgets.index(GPU_BYTES))
    activations = GPU_BYTES - swept.graph.fixed_bytes
    rows = []
    for rule, published in FIG5_SPEEDUPS.items():
        costs = [
            cheapest_cost(swept.rules[rule], activations, accounting)
            for accounting in ("matrices", "simulator")
        ]
        ratios = [None if best is None or each is None else each / best for each in costs]
        rows.append(
            {
                "graph": swept.graph.name,
                "strategy": TITLES[rule],
                "published": published,
                "paper's accounting": ratios[0],
                "simulator": ratios[1],
            }
        )
    return rows
