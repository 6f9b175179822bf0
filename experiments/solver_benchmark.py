"""What the solvers reach: one table of overhead, bound and seconds, beside the published results.

    python -m experiments.solver_benchmark [--quick] [--seeds 5]
    python -m experiments.solver_benchmark --graphs FILE... --order fixed free --solver auto milp

Groups: `paper`, seven networks of the paper as layer graphs; `layered`, random layered graphs
of 100 to 1,000 nodes; `steps`, real train steps; `large`, steps of 3,000 to 5,000 nodes; `size`,
10,000 nodes. The paper's networks and the steps are built with Keras, so they need TensorFlow.
With several seeds the figures are medians. A question about any order begins with what was found
for the input order under the same budget, where that was asked before. Beside the table: a CSV
file, and a plot of gap against time, a panel for each group, in the folder results/.
"""

from __future__ import annotations

import argparse
import csv
import io
import resource
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.anytime import Point, curve, plot_curves
from experiments.layered_graphs import SIZES, layered_graph
from experiments.published import public_instance, published_overhead
from solvers import (
    CheckmateError,
    ComputationGraph,
    Progress,
    Schedule,
    Solution,
    SolverError,
    find_solver,
    solve,
)
from solvers.graph.files import write_whole
from solvers.graph.layer_graphs import unit_chain
from solvers.problem import Order

_COLUMNS = {
    "budget": "%", "solver": "solver", "overhead": "overhead", "bound": "bound", "gap": "gap",
    "status": "status", "first_seconds": "first s", "seconds": "s", "published": "publ.",
}  # fmt: skip

_ORDERS: tuple[Order, ...] = ("fixed", "free")

GROUPS = ("paper", "layered", "steps", "large", "size")


@dataclass(frozen=True)
class Question:
    """A graph under a budget in % of its input-order peak, in a fixed or a free order.

    Attributes:
        instance: the published one that the graph is like; see `experiments.published`.
    """

    graph: ComputationGraph
    budget: int
    order: Order
    time_limit: float
    instance: str = ""

    @property
    def title(self) -> str:
        """One line for a person."""
        return f"{self.graph.name}, {self.budget} %, {self.order} order"


@dataclass(frozen=True)
class Row:
    """One question to one solver; overheads in % of one pass, medians over the seeds.

    Attributes:
        first_seconds: until the first schedule.
        published: the best published overhead where there is one; see `experiments.published`.
    """

    graph: str
    nodes: int
    edges: int
    order: Order
    budget: int
    solver: str
    overhead: float | None
    bound: float | None
    gap: float | None
    bound_order: str
    status: str
    first_seconds: float | None
    seconds: float
    seeds: int
    published: float | None


def paper_questions() -> Iterator[Question]:
    """The paper's networks at 90–50 %, two of them down to 20 %.

    The published figures are of the same networks with other costs: none is printed beside these.
    """
    from experiments.paper_networks import NETWORKS

    for name, build in NETWORKS.items():
        if name == "DenseNet201":
            continue
        graph = build()
        lean = (40, 30, 20) if name in ("MobileNet", "ResNet50") else ()
        for budget in (90, 80, 70, 60, 50, *lean):
            yield Question(graph, budget, "fixed", 60.0)


def layered_questions() -> Iterator[Question]:
    """Random layered graphs as large as the public ones."""
    for nodes, edges in SIZES.items():
        graph = layered_graph(nodes, edges)
        for budget in (90, 80, 70):
            yield Question(graph, budget, "fixed", 60.0, f"layered-{nodes}")
        for budget in (90, 80, 70, 60):
            yield Question(graph, budget, "free", 30.0, f"layered-{nodes}")


def step_questions() -> Iterator[Question]:
    """Real train steps at half of what they add to what is held before."""
    from experiments.train_steps import STEPS

    for extract in STEPS.values():
        yield Question(extract(), 50, "free", 60.0)


def large_questions() -> Iterator[Question]:
    """Deep and unrolled networks, in the time in which a bound is to be had."""
    from experiments.large_steps import LARGE

    for extract in LARGE:
        graph = extract()
        for order in _ORDERS:
            for budget in (80, 70, 50):
                yield Question(graph, budget, order, 30.0)


def size_questions() -> Iterator[Question]:
    """Ten thousand nodes."""
    yield Question(layered_graph(10_000, 40_000), 80, "free", 120.0)


def quick_questions() -> Iterator[Question]:
    """Small graphs that need no TensorFlow, 5 s each."""
    for graph in (unit_chain(8), unit_chain(32), layered_graph(50, 110)):
        for budget in (90, 70, 50):
            yield Question(graph, budget, "fixed", 5.0)
            yield Question(graph, budget, "free", 5.0)


_QUESTIONS: dict[str, Callable[[], Iterator[Question]]] = {
    "paper": paper_questions,
    "layered": layered_questions,
    "steps": step_questions,
    "large": large_questions,
    "size": size_questions,
}


Known = dict[tuple[str, int, str, int], Schedule]
"""By graph, budget, solver and seed: the schedule that was found for the input order."""


def ask(question: Question, solver: str, seeds: int, known: Known) -> tuple[Row, list[Point]]:
    """Put `question` to `solver` with every seed; the medians, and the first seed's curve.

    Args:
        known: where a free question may begin; fixed ones add theirs.
    """
    answers: list[Solution] = []
    curves: list[list[Point]] = []
    graph = question.graph
    for seed in range(seeds):
        told: list[Progress] = []
        key = (graph.name, question.budget, solver, seed)
        options: dict[str, Any] = {}
        if question.order == "free" and key in known:
            options["starts"] = [known[key]]
        answer = solve(
            graph,
            question.budget / 100,
            solver,
            question.time_limit,
            order=question.order,
            seed=seed,
            on_progress=told.append,
            **options,
        )
        may_start = "starts" in find_solver(solver).options
        if may_start and question.order == "fixed" and answer.schedule is not None:
            known[key] = answer.schedule
        answers.append(answer)
        curves.append(curve(graph, told, answer))
    ends = [points[-1] for points in curves if points]
    bounds = [each.bound for each in answers if each.bound is not None]
    row = Row(
        graph=graph.name,
        nodes=len(graph),
        edges=len(graph.edges),
        order=question.order,
        budget=question.budget,
        solver=solver,
        overhead=_median(end.overhead for end in ends),
        bound=_median(100 * (bound / graph.one_pass_cost - 1) for bound in bounds),
        gap=_median(end.gap for end in ends),
        bound_order=answers[0].bound_order,
        status=statistics.mode(str(each.status) for each in answers),
        first_seconds=_median(points[0].seconds for points in curves if points),
        seconds=statistics.median(each.seconds for each in answers),
        seeds=seeds,
        published=published_overhead(question.instance, question.order, question.budget),
    )
    return row, curves[0]


def _median(values: Iterator[float]) -> float | None:
    return statistics.median(found) if (found := list(values)) else None


def as_tables(rows: Sequence[Row]) -> Iterator[Table]:
    """A table of 80 columns for each graph and order; overhead, bound and gap in % of one pass."""
    for (graph, nodes, order), of_graph in groupby(rows, lambda r: (r.graph, r.nodes, r.order)):
        table = Table(
            title=f"{graph}, n={nodes}, {order} order",
            title_justify="left",
            box=None,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        for name, title in _COLUMNS.items():
            is_text = name in ("solver", "status")
            table.add_column(title, justify="left" if is_text else "right", no_wrap=True)
        for row in of_graph:
            values = asdict(row)
            # Published figures have one digit.
            values["published"] = None if row.published is None else f"{row.published:g}"
            table.add_row(*(_cell(values[name]) for name in _COLUMNS))
        yield table


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def as_csv(rows: Sequence[Row]) -> str:
    """The rows as CSV with a header."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [each.name for each in fields(Row)])
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()


def questions(options: Any) -> Iterator[tuple[str, Question]]:
    """What the command line asks for, each question with its group."""
    if options.graphs:
        for graph in options.graphs:
            for order in options.order:
                for budget in options.budget:
                    limit = 60.0 if options.time_limit is None else options.time_limit
                    instance = public_instance(graph.name)
                    yield "saved graphs", Question(graph, budget, order, limit, instance)
    elif options.quick:
        for question in quick_questions():
            yield "quick", question
    else:
        for group in options.groups:
            for question in _QUESTIONS[group]():
                yield group, question


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see the module."""
    parser = argparse.ArgumentParser(description="benchmark of the solvers")
    parser.add_argument("--quick", action="store_true", help="small graphs, 5 s a problem")
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--graphs", nargs="+", default=[], metavar="FILE", help="instead of groups")
    parser.add_argument("--budget", nargs="+", type=int, default=[90, 80, 70, 60, 50], metavar="%")
    parser.add_argument("--order", nargs="+", choices=["fixed", "free"], default=["fixed"])
    parser.add_argument("--solver", nargs="+", default=["auto"], metavar="NAME")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="for saved graphs")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="medians of N seeds")
    parser.add_argument("--csv", default="results/solver_benchmark.csv", metavar="FILE")
    parser.add_argument("--plot", default="results/solver_benchmark.png", metavar="FILE")
    options = parser.parse_args(arguments)
    if options.seeds < 1:
        parser.error(f"argument --seeds: {options.seeds} is not a positive number")
    try:
        for solver in options.solver:
            find_solver(solver)
        options.graphs = [ComputationGraph.load(path) for path in options.graphs]
    except CheckmateError as error:
        parser.error(str(error))
    for graph in options.graphs:
        if not graph.one_pass_cost:
            parser.error(f"{graph.name}: one pass costs nothing, so nothing is a share of it")
    for path in (options.csv, options.plot):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    console = Console(width=80, highlight=False)
    rows: list[Row] = []
    known: Known = {}
    curves: dict[str, dict[str, list[list[Point]]]] = {}
    with console.status("solving") as status:
        for group, question in questions(options):
            for solver in options.solver:
                status.update(f"{question.title}: {solver}")
                try:
                    row, points = ask(question, solver, options.seeds, known)
                except SolverError as error:
                    console.print(f"{question.title}: {error}")
                    continue
                rows.append(row)
                curves.setdefault(group, {}).setdefault(solver, []).append(points)
                write_whole(options.csv, as_csv(rows))
    if not rows:
        raise SystemExit("no solver has answered; nothing is written")
    plot_curves(curves, options.plot)
    console.print("overhead, bound and gap in % of one pass; published overheads beside them\n")
    for table in as_tables(rows):
        console.print(table)
        console.print()
    console.print(f"written to {options.csv} and {options.plot}")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    console.print(f"this process held at most {most:.1f} GiB")


if __name__ == "__main__":
    main()
