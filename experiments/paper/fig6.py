"""Figure 6: the largest batch in 16 GB whose step costs at most one extra forward pass.

Sizes are affine in the batch, so a rule's largest batch follows from its plans at batch 1. For the
optimum batches are bisected: each question is answered by a schedule cheap enough, or by a bound.

Columns: what is published; the paper's accounting, in which rules hold what their matrices say and
fixed memory is taken off twice for them, once for Checkmate; and counted once, by the simulator.
"""

from __future__ import annotations

from typing import Any

from experiments.paper.cells import Cell
from experiments.paper.pictures import bars
from experiments.paper.published import FIG6, FIG6_PRINTED
from experiments.paper.settings import GPU_BYTES, Settings
from experiments.paper.strategies import RULES, TITLES, Plan, plans
from solvers import ComputationGraph, Progress, Schedule, Status, simulate, solve
from solvers.graph.bounds import least_need
from solvers.graph.matrices import matrix_peak

_NETWORKS = ("U-Net", "FCN8", "FCN8-VGG", "SegNet", "VGG19", "ResNet50", "MobileNet")
_QUICK = ("VGG19",)

_ENOUGH = 1 + 1e-9
"""Costs are added in different orders."""


def run(settings: Settings) -> None:
    """Every network under every rule, and at the optimum."""
    names = _QUICK if settings.quick else _NETWORKS
    asked = [(name, rule) for name in names for rule in (*RULES, "checkmate")]
    cells = []
    for name, rule in asked:
        graph = settings.network(name)
        if rule == "checkmate":
            arguments: dict[str, Any] = {"graph": graph, "time_limit": settings.patience}
            cells.append(Cell(f"{name} largest batch", largest_by_search, arguments))
        else:
            cells.append(Cell(f"{name} {rule}", plans, {"graph": graph, "rule": rule}))
    rows = []
    for (name, rule), answer in zip(asked, settings.answers("fig6", cells), strict=True):
        if answer:
            rows.append(_row(settings.network(name), name, rule, answer))
    settings.write_table("fig6", "largest batch in 16 GB, at most one extra forward pass", rows)
    bars(settings.output / "fig6.png", rows)


def _row(graph: ComputationGraph, name: str, rule: str, answer: Any) -> dict[str, Any]:
    if rule == "checkmate":
        theirs, ours = answer["matrices"], answer["largest"]
        proved = "yes" if answer["impossible"] == ours + 1 else f"below {answer['impossible']}"
    else:
        theirs = largest_by_rule(graph, answer, "matrices", fixed_times=2)
        ours = largest_by_rule(graph, answer, "simulator", fixed_times=1)
        proved = ""
    return {
        "network": name,
        "strategy": TITLES[rule],
        "published": FIG6.get(name, {}).get(rule),
        "source": "printed" if (name, rule) in FIG6_PRINTED else "",
        "paper's accounting": theirs,
        "counted once": ours,
        "proved": proved,
    }


def most_cost(graph: ComputationGraph) -> float:
    """One pass and one extra forward pass, right side of (10)."""
    return graph.one_pass_cost + sum(node.cost for node in graph.nodes if not node.backward)


def largest_by_rule(
    graph: ComputationGraph, found: list[Plan], accounting: str, fixed_times: int
) -> int | None:
    """The largest batch of the plans of a rule at batch 1; None if all cost too much.

    Example:
        >>> from solvers.graph.layer_graphs import vgg19
        >>> largest_by_rule(vgg19(), plans(vgg19(), "ap_sqrt"), "matrices", fixed_times=2)
        197
    """
    limit = most_cost(graph) * _ENOUGH
    room = GPU_BYTES - fixed_times * graph.fixed_bytes
    sizes = (int(room // plan[accounting]) for plan in found if plan["cost"] <= limit)
    return max(sizes, default=None)


def largest_by_search(graph: ComputationGraph, time_limit: float) -> dict[str, int]:
    """The largest batches with a schedule that was found, and the least that has none, proved.

    "largest" counts by the simulator; "matrices" by (2)–(5), and is what was found and no more.
    Between "largest" and "impossible" is what the time limit left open.
    """
    room = GPU_BYTES - graph.fixed_bytes
    (kept,) = plans(graph, "checkpoint_all")
    found = {key: int(room // kept[accounting]) for key, accounting in _COUNTED.items()}
    impossible = room // least_need(graph) + 1
    for key in _COUNTED:
        beyond = impossible if key == "largest" else found["largest"] + 1
        batch = beyond - 1  # the largest single step is often the whole limit
        while beyond - found[key] > 1:
            schedule = _cheap(graph, graph.fixed_bytes + room // batch, time_limit)
            if isinstance(schedule, Schedule):
                peaks = {
                    "largest": simulate(graph, schedule).peak,
                    "matrices": matrix_peak(graph, *schedule.to_matrices(graph)),
                }
                for each, peak in peaks.items():
                    found[each] = max(found[each], room // (peak - graph.fixed_bytes))
            elif schedule is False:
                impossible = batch
            if found[key] < batch:
                beyond = batch
            batch = (found[key] + beyond) // 2
    return {**found, "impossible": impossible}


_COUNTED = {"largest": "simulator", "matrices": "matrices"}


def _cheap(graph: ComputationGraph, budget: int, time_limit: float) -> Schedule | bool:
    """A schedule within the bytes that is cheap enough; False if there is none, True if open."""
    limit = most_cost(graph) * _ENOUGH

    def stop(progress: Progress) -> None:
        cheap = progress.cost is not None and progress.cost <= limit
        if cheap or (progress.bound is not None and progress.bound > limit):
            raise KeyboardInterrupt  # to which a solver answers with what it has

    answer = solve(graph, budget, "auto", time_limit, order="fixed", on_progress=stop)
    if answer.schedule is not None and answer.cost is not None and answer.cost <= limit:
        return answer.schedule
    dear = answer.bound is not None and answer.bound > limit
    return not (dear or answer.status is Status.INFEASIBLE)
