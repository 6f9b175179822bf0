"""`checkmate-tf solve`: one solver on one graph, a short table, and the plan as a file."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

from rich.table import Table

from checkmate_tf.cli.arguments import (
    INFEASIBLE,
    NO_ANSWER,
    SOLVED,
    add_solver_arguments,
    table_console,
)
from checkmate_tf.plans.documents import document_of
from checkmate_tf.progress import solver_progress
from solvers import (
    ComputationGraph,
    Solution,
    Status,
    format_bytes,
    parse_budget,
    solve,
)
from solvers.api import find_solver
from solvers.comparison import overhead, status_text
from solvers.graph import input_order_peak
from solvers.graph.budget import share_meant
from solvers.graph.files import write_whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A graph, a budget, and how to solve."""
    parser.add_argument("graph", type=Path, metavar="GRAPH", help="a JSON file")
    parser.add_argument(
        "--budget",
        required=True,
        metavar="80%|2GiB|BYTES|min",
        help="a share of what one pass adds to fixed_bytes, a size, or the least that is found",
    )
    parser.add_argument(
        "--solver",
        default="auto",
        metavar="NAME",
        help="as `checkmate-tf solvers` lists them (default: auto)",
    )
    parser.add_argument("--output", type=Path, metavar="PLAN.json", help="the plan as a file")
    parser.add_argument(
        "--fallback",
        action="store_true",
        help="go on with HiGHS where the backend's licence does not do",
    )
    add_solver_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Solve, print, write; the exit status."""
    graph = ComputationGraph.load(arguments.graph)
    budget = parse_budget(arguments.budget)
    find_solver(arguments.solver)
    options: dict[str, Any] = {"backend": arguments.backend} if arguments.backend else {}
    options |= {"fallback": True} if arguments.fallback else {}
    with solver_progress(graph, arguments.time_limit) as show:
        solution = solve(
            graph,
            budget,
            arguments.solver,
            arguments.time_limit,
            order=arguments.order,
            seed=arguments.seed,
            on_progress=show,
            **options,
        )
    size = solution.least_budget
    if not budget.least:
        size = budget.in_bytes(graph.fixed_bytes, input_order_peak(graph))
    assert size is not None
    try:
        if solution.schedule is not None and arguments.output is not None:
            write_whole(arguments.output, json.dumps(document_of(graph, solution, size)) + "\n")
    finally:  # where one of the two fails, the other still says what was found
        table_console(width=80).print(_table(graph, solution, size))
    if status_text(solution) == "bound":
        return SOLVED
    if solution.schedule is None:
        told = filter(None, (_what_is_missing(solution, graph), share_meant(budget)))
        print(f"checkmate-tf: {'; '.join(told)}", file=sys.stderr)
    failures = {Status.INFEASIBLE: INFEASIBLE, Status.TIMEOUT: NO_ANSWER}
    return failures.get(solution.status, SOLVED)


def _table(graph: ComputationGraph, solution: Solution, budget: int) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("graph", f"{graph.name} ({len(graph)} nodes, {len(graph.edges)} edges)")
    table.add_row("solver", solution.solver)
    table.add_row("status", status_text(solution))
    table.add_row("budget", _size(budget))
    table.add_row("one pass", f"peak {format_bytes(input_order_peak(graph))}")
    if solution.peak is not None:
        table.add_row("peak", _size(solution.peak))
        table.add_row("overhead", _overhead(graph, solution.cost))
    if solution.provable_budget is not None:
        table.add_row("least memory", f"{_size(solution.provable_budget)} or more, proved")
    if solution.bound is not None:
        order = "" if solution.bound_order == "free" else " (for this order of the nodes)"
        table.add_row("bound", f"{_overhead(graph, solution.bound)}{order}")
    if solution.among:
        table.add_row("", f"among {solution.among}")
    table.add_row("seconds", f"{solution.seconds:.2f}")
    if solution.note:
        table.add_row("note", solution.note)
    return table


def _size(size: int) -> str:
    return f"{format_bytes(size)} ({size} B)"


def _overhead(graph: ComputationGraph, cost: float | None) -> str:
    percent = overhead(graph, cost)
    if percent is None:
        return "–"
    unit = f" {graph.cost_unit}" if graph.cost_unit else ""
    return f"{percent:.3f} % (cost {cost:.10g}{unit})"


def _what_is_missing(solution: Solution, graph: ComputationGraph) -> str:
    is_proved, provable = solution.status is Status.INFEASIBLE, solution.provable_budget
    what = f"no schedule {'is under this budget' if is_proved else 'under this budget was found'}"
    proved = "" if provable is None else f", less than {format_bytes(provable)} never is"
    # One pass in the graph's own order, which keeps every value, is a schedule as well.
    least = int(min(input_order_peak(graph), solution.least_budget or math.inf))
    return f"{what}; {least} bytes ({format_bytes(least)}) are known to be enough{proved}"
