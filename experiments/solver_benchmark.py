"""What the solvers reach: one table of overhead, bound and seconds, beside the published results.

    python -m experiments.solver_benchmark [--quick] [--graphs FILE...] [--csv FILE]

Without files it solves graphs of its own making: the paper's chains of layers and random layered
graphs. The published results (Moccasin, ICML 2023, and FastSA) belong to public instances: they
are shown beside graphs with the same numbers of nodes and edges.
"""

from __future__ import annotations

import argparse
import csv
import io
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from rich.console import Console
from rich.table import Table

from solvers import ComputationGraph, Node, Solution, solve
from solvers.files import write_whole
from solvers.layer_graphs import unit_chain
from solvers.solution import Order

# (nodes, edges, order, budget in %) → best published overhead in %. Fixed: Checkmate's MILP or
# Moccasin; free: FastSA.
PUBLISHED: dict[tuple[int, int, str, int], float] = {
    (100, 236, "fixed", 90): 0.8,
    (100, 236, "fixed", 80): 2.3,
    (100, 236, "free", 90): 0.0,
    (100, 236, "free", 80): 0.3,
    (250, 944, "fixed", 90): 0.9,
    (250, 944, "fixed", 80): 4.9,
    (250, 944, "free", 90): 0.0,
    (250, 944, "free", 80): 0.0,
    (250, 944, "free", 70): 2.6,
    (353, 751, "fixed", 90): 0.1,
    (353, 751, "fixed", 80): 0.3,
    (353, 751, "free", 90): 0.2,
    (353, 751, "free", 80): 0.4,
    (353, 751, "free", 70): 0.8,
}


@dataclass(frozen=True)
class Row:
    """One solved problem; overheads in % of one pass, budget in % of the input-order peak."""

    graph: str
    nodes: int
    order: Order
    budget: int
    overhead: float | None
    bound: float | None
    gap: float | None
    bound_order: str
    status: str
    seconds: float
    published: float | None


def random_layered(nodes: int, width: int = 8, seed: int = 0) -> ComputationGraph:
    """Layers of random width; a node reads nodes of the layer before and a few from further back.

    Costs and memories are uniform whole numbers, as in the instances of the literature.
    """
    draw = random.Random(seed)
    made: list[Node] = []
    previous: list[int] = []
    while len(made) < nodes:
        first = len(made)
        for number in range(first, min(nodes, first + draw.randint(1, width))):
            reads = set(draw.sample(previous, min(len(previous), draw.randint(1, 3))))
            if first and draw.random() < 0.3:
                reads.add(draw.randrange(first))
            made.append(
                Node(
                    f"v{number}",
                    cost=draw.randint(1, 50),
                    memory=draw.randint(1, 500),
                    dependencies=tuple(sorted(reads)),
                )
            )
        previous = list(range(first, len(made)))
    return ComputationGraph(tuple(made), name=f"layered {nodes}")


def benchmark_row(
    graph: ComputationGraph, budget: int, order: Order, time_limit: float, seed: int
) -> Row:
    """Solve `graph` at `budget` % of its input-order peak."""
    solution: Solution = solve(graph, budget / 100, "auto", time_limit, order=order, seed=seed)
    one_pass = graph.one_pass_cost

    def overhead(cost: float | None) -> float | None:
        return None if cost is None else 100 * (cost / one_pass - 1)

    has_gap = solution.cost is not None and solution.bound is not None
    return Row(
        graph=graph.name,
        nodes=len(graph),
        order=order,
        budget=budget,
        overhead=overhead(solution.cost),
        bound=overhead(solution.bound),
        gap=100 * ((solution.cost or 0) - (solution.bound or 0)) / one_pass if has_gap else None,
        bound_order=solution.bound_order,
        status=str(solution.status),
        seconds=solution.seconds,
        published=PUBLISHED.get((len(graph), len(graph.edges), order, budget)),
    )


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def as_table(rows: Sequence[Row]) -> Table:
    """The rows for a terminal."""
    table = Table(title="overhead, bound and gap in % of one pass")
    for each in fields(Row):
        is_text = each.name in ("graph", "order", "bound_order", "status")
        table.add_column(each.name.replace("_", " "), justify="left" if is_text else "right")
    for row in rows:
        table.add_row(*(_cell(value) for value in asdict(row).values()))
    return table


def as_csv(rows: Sequence[Row]) -> str:
    """The rows as CSV with a header."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [each.name for each in fields(Row)])
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()


def own_graphs(quick: bool) -> list[ComputationGraph]:
    """The graphs that need no file."""
    chains = [unit_chain(layers) for layers in ((8, 32) if quick else (8, 32, 128))]
    return chains + [random_layered(nodes) for nodes in ((50,) if quick else (100, 250, 500))]


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see the module."""
    parser = argparse.ArgumentParser(description="benchmark of the solvers")
    parser.add_argument("--quick", action="store_true", help="small graphs, 5 s a problem")
    parser.add_argument("--graphs", nargs="+", default=[], metavar="FILE", help="instead of own")
    parser.add_argument("--budget", nargs="+", type=int, default=[90, 80, 70, 60, 50], metavar="%")
    parser.add_argument("--order", nargs="+", choices=["fixed", "free"], default=["fixed", "free"])
    parser.add_argument("--time-limit", type=float, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--csv", default="solver_benchmark.csv", metavar="FILE")
    options = parser.parse_args(arguments)
    graphs = [ComputationGraph.load(each) for each in options.graphs] or own_graphs(options.quick)
    time_limit = options.time_limit or (5.0 if options.quick else 60.0)
    console = Console()
    rows: list[Row] = []
    with console.status("solving") as status:
        for graph in graphs:
            for order in options.order:
                for budget in options.budget:
                    status.update(f"{graph.name}: {budget} %, {order} order")
                    rows.append(benchmark_row(graph, budget, order, time_limit, options.seed))
                    write_whole(options.csv, as_csv(rows))
    console.print(as_table(rows))
    console.print(f"written to {options.csv}")


if __name__ == "__main__":
    main()
