"""`checkmate-tf compare`: solvers side by side; tables, a CSV file and a plot."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, groupby
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table

from checkmate_tf.cli.arguments import (
    NO_ANSWER,
    SOLVED,
    add_solver_arguments,
    table_console,
    whole_number,
)
from checkmate_tf.interrupts import noted_interrupts
from checkmate_tf.progress import counted_progress
from solvers import CheckmateError, ComputationGraph, Status, format_bytes
from solvers.comparison import FAILED, Row, cases, run_cases, write_csv

_WRAPPED = ("budget", "best: the quickest first")
_NUMBERS = ("overhead %", "peak", "bound %", "gap %", "s")

_EQUAL = 1e-9
"""Relative difference under which two costs are the same."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Graphs, budgets, solvers, and where the results go."""
    parser.add_argument("graphs", nargs="*", metavar="GRAPH", help="JSON files")
    parser.add_argument(
        "--budget",
        nargs="+",
        required=True,
        metavar="80%|2GiB|BYTES",
        help="shares of what one pass adds to fixed_bytes, or sizes",
    )
    parser.add_argument(
        "--solver",
        nargs="+",
        default=["all"],
        metavar="all|NAME",
        help="as `checkmate-tf solvers` lists them (default: all that suit the graph's size)",
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="a row for every run")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="a .png, .pdf or .svg")
    parser.add_argument(
        "--jobs", type=whole_number, default=1, metavar="N", help="runs at a time (default: 1)"
    )
    add_solver_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run every solver under every budget on every graph; Ctrl-C keeps the rows that are done."""
    budgets, after_budgets = _files_apart(arguments.budget)
    solvers, after_solvers = _files_apart(arguments.solver)
    paths = list(dict.fromkeys([*arguments.graphs, *after_budgets, *after_solvers]))
    if not paths:
        raise CheckmateError(
            "argument-missing", "compare needs a graph: `checkmate-tf compare GRAPH --budget 80%`"
        )
    to_run = cases(
        _named_apart({path: ComputationGraph.load(path) for path in paths}),
        budgets,
        solvers,
        arguments.time_limit,
        arguments.order,
        arguments.seed,
        arguments.backend,
    )
    with noted_interrupts() as interrupts, counted_progress("runs", len(to_run)) as show:
        ended = count(1)

        def on_row(row: Row) -> None:
            show(next(ended), f"{row.solver} at {row.budget}: {row.status}")
            interrupts.pass_on()  # the solver that was running has answered with what it had

        rows = run_cases(to_run, arguments.jobs, on_row)
    try:
        written = list(_write(rows, arguments))
    finally:  # where one of the two fails, the other still says what was found
        console = table_console(width=80)
        for graph, of_graph in groupby(rows, key=lambda row: row.graph):
            _print(console, graph, list(of_graph))
    if len(rows) < len(to_run):
        print(f"stopped: {len(rows)} of {len(to_run)} runs are done")
    for line in written:
        print(line)
    return (
        SOLVED if any(row.cost is not None or row.bound is not None for row in rows) else NO_ANSWER
    )


def _files_apart(values: list[str]) -> tuple[list[str], list[str]]:
    """An option's values, and the files after them: argparse takes those for more values."""
    is_file = [each.endswith(".json") or Path(each).is_file() for each in values]
    return (
        [each for each, file in zip(values, is_file, strict=True) if not file],
        [each for each, file in zip(values, is_file, strict=True) if file],
    )


def _named_apart(graphs: Mapping[str, ComputationGraph]) -> list[ComputationGraph]:
    """The graphs by their files; those with the same name get the file's in addition."""
    names = Counter(graph.name for graph in graphs.values())
    return [
        graph if names[graph.name] == 1 else replace(graph, name=f"{graph.name} ({path})")
        for path, graph in graphs.items()
    ]


def _write(rows: Sequence[Row], arguments: argparse.Namespace) -> Iterator[str]:
    """Write the files that were asked for; a line about each."""
    if rows and arguments.csv is not None:
        write_csv(rows, arguments.csv)
        yield f"{arguments.csv}: {len(rows)} rows"
    if rows and arguments.plot is not None:
        from checkmate_tf.cli.plots import plot_comparison

        plot_comparison(rows, arguments.plot)
        yield f"{arguments.plot}: overhead against budget"


def _print(console: Console, graph: str, rows: list[Row]) -> None:
    console.print(f"{graph}: the best at each budget\n", _best_table(rows))
    results = _results_table(rows)
    if results.row_count:
        console.print("\nEvery solver that has a result\n", results)
    console.print("\n".join(("", *_without_result(rows), "")))


def _best_table(rows: Sequence[Row]) -> Table:
    """For every budget the solvers of least cost, the quickest first, and the highest bound."""
    table = _table("budget", "overhead %", "bound %", "best: the quickest first")
    for budget, asked in _by_budget(rows).items():
        solved = sorted((row for row in asked if row.cost is not None), key=lambda row: row.seconds)
        # A bound for one order of the nodes does not hold for another.
        bounds = [
            row.bound_overhead
            for row in asked
            if row.bound_overhead is not None and row.bound_order in ("free", row.order)
        ]
        highest = max(bounds, default=None)
        if not solved:
            none = "no schedule exists" if _is_infeasible(asked) else "no solver has a schedule"
            table.add_row(budget, "–", _number(highest), none)
            continue
        least = min(row.cost or 0.0 for row in solved)
        best = [row for row in solved if (row.cost or 0.0) <= least * (1 + _EQUAL)]
        names = ", ".join(row.solver for row in best)
        table.add_row(budget, _number(best[0].overhead), _number(highest), names)
    return table


def _results_table(rows: Sequence[Row]) -> Table:
    """The rows with a schedule or a bound; overhead and bound in % of one pass."""
    table = _table("budget", "solver", "overhead %", "peak", "bound %", "gap %", "status", "s")
    for row in rows:
        if _has_result(row):
            table.add_row(
                row.budget,
                row.solver,
                _number(row.overhead),
                "–" if row.peak is None else format_bytes(row.peak),
                _number(row.bound_overhead),
                _number(row.gap),
                row.status,
                f"{row.seconds:.1f}",
            )
    return table


def _without_result(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each way to have no result, at some budgets, and the solvers that it befell."""
    possible = {
        budget: asked for budget, asked in _by_budget(rows).items() if not _is_infeasible(asked)
    }
    budgets: dict[tuple[str, str], list[str]] = defaultdict(list)
    for budget, asked in possible.items():
        for row in asked:
            if not _has_result(row):
                status = f"{FAILED} with {row.note}" if row.status == FAILED else row.status
                budgets[status, row.solver].append(budget)
    solvers: dict[str, list[str]] = defaultdict(list)
    for (status, solver), befallen in budgets.items():
        at = "" if len(befallen) == len(possible) else f" at {', '.join(befallen)}"
        solvers[f"{status}{at}"].append(solver)
    yield from (f"{what}: {', '.join(names)}" for what, names in solvers.items())


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for each in headings:
        side: Literal["right", "left"] = "right" if each in _NUMBERS else "left"
        table.add_column(each, justify=side, no_wrap=each not in _WRAPPED)
    return table


def _has_result(row: Row) -> bool:
    return row.cost is not None or row.bound is not None


def _is_infeasible(rows: Sequence[Row]) -> bool:
    """Whether one of the solvers has proved that the budget of these rows is too small."""
    return any(row.status == Status.INFEASIBLE for row in rows)


def _by_budget(rows: Sequence[Row]) -> dict[str, list[Row]]:
    budgets = dict.fromkeys(row.budget for row in rows)
    return {budget: [row for row in rows if row.budget == budget] for budget in budgets}


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
