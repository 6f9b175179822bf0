"""Time to a proof, and the gap that is left, against the size of the graph.

The paper's program (9) in HiGHS, SCIP and CBC through cvxpy and in Gurobi, beside this project's
exact method and its searches. Budgets are a quarter of the way from the largest single step to what
keeping all takes. A solver of (9) that proves nothing is not asked on larger graphs of the family.
"""

from __future__ import annotations

from typing import Any

from experiments.paper.cells import Cell
from experiments.paper.pictures import proofs
from experiments.paper.settings import Settings
from solvers import ComputationGraph, SolverError, Status, solve
from solvers.checkmate.formulation import build_frontier, fits_in_memory
from solvers.checkpointing.incumbent import BY_RULE
from solvers.graph import input_order_peak
from solvers.graph.bounds import least_need
from solvers.graph.layer_graphs import unit_chain

_SOLVERS: dict[str, tuple[str, dict[str, Any]]] = {
    "(9) in HiGHS": ("milp", {"backend": "cvxpy:HIGHS"}),
    "(9) in SCIP": ("milp", {"backend": "cvxpy:SCIP"}),
    "(9) in CBC": ("milp", {"backend": "cvxpy:CBC"}),
    "(9) in Gurobi": ("milp", {"backend": "gurobi"}),
    "cutting planes": ("cutting_planes", {}),
    "auto": ("auto", {}),
    "search": ("search", {}),
}

_SEARCH = "search"
"""It has no bound but one pass, and ends without a proof; it gets a third of the others' time."""

_CHAINS = (8, 16, 32, 64)
_NETWORKS = (
    "VGG16", "VGG19", "U-Net", "FCN8-VGG", "SegNet", "MobileNet", "ResNet50", "DenseNet201",
)  # fmt: skip


def run(settings: Settings) -> None:
    """Ask the smaller graphs first."""
    chains, names = ((8,), ("VGG16",)) if settings.quick else (_CHAINS, _NETWORKS)
    families = {
        "unit chains": [unit_chain(layers) for layers in chains],
        "networks": [settings.network(name) for name in names],
    }
    rows = []
    for family, graphs in families.items():
        asked = list(_SOLVERS)
        for graph in graphs:
            answers = dict(zip(asked, _answers(settings, graph, asked), strict=True))
            size = {"family": family, **_size(graph)}
            rows += [{**size, "solver": name, **answer} for name, answer in answers.items()]
            asked = [
                name
                for name, answer in answers.items()
                if _SOLVERS[name][0] != "milp" or answer["proved"] == "yes"
            ]
    settings.write_table("solve_time", "time to a proof, and the gap", rows)
    proofs(settings.output / "solve_time.png", rows)


def _answers(settings: Settings, graph: ComputationGraph, names: list[str]) -> list[Any]:
    cells = []
    for name in names:
        solver, options = _SOLVERS[name]
        arguments = {
            "graph": graph,
            "budget": middle_budget(graph),
            "solver": solver,
            "time_limit": settings.time_limit / (3 if name == _SEARCH else 1),
            "options": options,
        }
        cells.append(Cell(f"{graph.name} {name}", proved_in, arguments))
    return settings.answers(graph.name, cells)


def middle_budget(graph: ComputationGraph) -> int:
    """Bytes a quarter of the way from the largest single step to what keeping all takes.

    Example:
        >>> middle_budget(unit_chain(8))  # the question of the paper's appendix
        4
    """
    least = graph.fixed_bytes + least_need(graph)
    return least + (input_order_peak(graph) - least) // 4


def _size(graph: ComputationGraph) -> dict[str, Any]:
    """Nodes, edges, and the variables of (9) as it is built here."""
    variables = None
    if fits_in_memory(graph):
        model = build_frontier(graph, middle_budget(graph) - graph.fixed_bytes).model
        variables = len(model.objective)
    return {
        "graph": graph.name,
        "nodes": len(graph),
        "edges": len(graph.edges),
        "variables of (9)": variables,
    }


def proved_in(
    graph: ComputationGraph, budget: int, solver: str, time_limit: float, options: dict[str, Any]
) -> dict[str, Any]:
    """Seconds, cost over one pass, the gap to the solver's own bound, and whose schedule it is.

    Every schedule costs one pass, so that this is a bound of every solver. While a program runs,
    simple rules are tried beside it; the answer may be theirs.
    """
    nothing = dict.fromkeys(("seconds", "cost", "gap, %", "schedule"))
    try:
        given = solve(graph, budget, solver, time_limit, order="fixed", **options)
    except SolverError as error:
        return {"proved": "no", **nothing, "reason": str(error).partition("(")[0].strip(" :")}
    proved = given.status in (Status.OPTIMAL, Status.INFEASIBLE)
    bound = max(given.bound or 0.0, graph.one_pass_cost)
    found = given.cost is not None
    return {
        "proved": "yes" if proved else "no",
        "seconds": round(given.seconds, 2),
        "cost": given.cost / graph.one_pass_cost if given.cost is not None else None,
        "gap, %": 100 * (given.cost / bound - 1) if given.cost is not None else None,
        "schedule": ("a rule's" if BY_RULE in given.note else "its own") if found else None,
        "reason": "" if found else given.note or "nothing found in time",
    }
