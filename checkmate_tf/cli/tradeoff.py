"""`checkmate-tf tradeoff`: budget against extra time, as a table, a picture, and plans."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from checkmate_tf.cli.arguments import INFEASIBLE, SOLVED, whole_number
from checkmate_tf.cli.target import (
    add_planning_arguments,
    add_solver_and_place,
    add_step,
    cost_model,
    load_step,
)
from solvers import BudgetError, CheckmateError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A step, how many budgets, and where picture and plans go."""
    add_step(parser)
    parser.add_argument(
        "--points", type=whole_number, default=9, metavar="N", help="budgets (default: 9)"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="a .png, .pdf or .svg")
    parser.add_argument(
        "--output",
        type=Path,
        dest="folder",
        metavar="FOLDER",
        help="each plan as a file: plan-0.json, …",
    )
    add_planning_arguments(parser, trial_run=False)
    add_solver_and_place(parser)


def run(arguments: argparse.Namespace) -> int:
    """Plan, print, draw, write; Ctrl-C keeps the points that are done."""
    if arguments.folder is not None:
        _make_folder(arguments.folder)
    from checkmate_tf.tradeoffs.tradeoff import tradeoff

    costs = cost_model(arguments, arguments.elsewhere)
    step, batch = load_step(arguments.function)
    try:
        found = tradeoff(
            step,
            *(batch if isinstance(batch, tuple) else () if batch is None else (batch,)),
            points=arguments.points,
            batch_size=arguments.batch_size,
            costs=costs,
            solver=arguments.solver,
            order=arguments.order,
            time_limit=arguments.time_limit,
            trial_run=arguments.trial_run,
            elsewhere=arguments.elsewhere,
        )
    except BudgetError as error:
        print(f"checkmate-tf: {error}", file=sys.stderr)
        return INFEASIBLE
    print(found)
    if arguments.plot is not None:
        found.plot(arguments.plot)
        print(f"\n{arguments.plot}: extra time against the budget")
    if arguments.folder is not None:
        paths = found.save(arguments.folder)
        print(f"\n{paths[0]} and so on: rematerialize(step, plan={str(paths[0])!r})")
    return SOLVED


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckmateError(
            "folder-unwritable", f"{path}: no folder can be made there: {error.strerror}"
        ) from error
