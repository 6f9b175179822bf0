"""`checkmate-tf compare`: solvers side by side; a table, a CSV file and a plot."""

from __future__ import annotations

import argparse
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table

from checkmate_tf.cli.arguments import (
    NO_ANSWER,
    SOLVED,
    add_solver_arguments,
    check_folder,
    load_solver_file,
    whole_number,
)
from checkmate_tf.interrupts import noted_interrupts
from checkmate_tf.progress import comparison_progress
from solvers import ComputationGraph, format_bytes
from solvers.comparison import Row, cases, run_cases, write_csv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Graphs, budgets, solvers, and where the results go."""
    parser.add_argument("graphs", type=Path, nargs="+", metavar="GRAPH", help="JSON files")
    parser.add_argument("--budget", nargs="+", required=True, metavar="80%|2GiB|BYTES")
    parser.add_argument("--solver", nargs="+", default=["all"], metavar="all|NAME")
    parser.add_argument("--csv", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="a .png, .pdf or .svg")
    parser.add_argument("--jobs", type=whole_number, default=1, metavar="N", help="runs at a time")
    add_solver_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run every solver under every budget on every graph; Ctrl-C keeps the rows that are done."""
    load_solver_file(arguments.solver_file)
    for path in (arguments.csv, arguments.plot):
        if path is not None:
            check_folder(path)
    to_run = cases(
        [ComputationGraph.load(path) for path in arguments.graphs],
        arguments.budget,
        arguments.solver,
        arguments.time_limit,
        arguments.order,
        arguments.seed,
        arguments.backend,
    )
    with noted_interrupts() as interrupts, comparison_progress(len(to_run)) as show:

        def on_row(row: Row) -> None:
            show(row)
            interrupts.pass_on()  # the solver that was running has answered with what it had

        rows = run_cases(to_run, arguments.jobs, on_row)
    console = Console(width=80)
    for graph, of_graph in groupby(rows, key=lambda row: row.graph):
        console.print(comparison_table(graph, list(of_graph)))
    if len(rows) < len(to_run):
        console.print(f"stopped: {len(rows)} of {len(to_run)} runs are done")
    if rows and arguments.csv is not None:
        write_csv(rows, arguments.csv)
    if rows and arguments.plot is not None:
        from checkmate_tf.cli.plots import plot_comparison

        plot_comparison(rows, arguments.plot)
    return (
        SOLVED if any(row.cost is not None or row.bound is not None for row in rows) else NO_ANSWER
    )


def comparison_table(graph: str, rows: list[Row]) -> Table:
    """Rows of one graph as a table of 80 columns; overhead and bound in % of one pass."""
    table = Table(title=graph, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("budget")
    table.add_column("solver", no_wrap=True)
    for heading in ("overhead %", "peak", "bound %", "gap %"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("s", justify="right", no_wrap=True)
    for row in rows:
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


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
