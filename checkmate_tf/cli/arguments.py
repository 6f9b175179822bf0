"""What commands share: exit statuses, arguments, and what is refused before any work is done."""

from __future__ import annotations

import argparse
import math
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from solvers.api import SEEDS, SOLVERS
from solvers.errors import CheckmateError

# The exit statuses of `checkmate-tf`, which scripts rely on.
SOLVED = 0
BAD_INPUT = 2
INFEASIBLE = 3
NO_ANSWER = 4

Number = TypeVar("Number", int, float)


def _numbers(
    read: Callable[[str], Number], name: str, least: float, most: float, range_in_words: str
) -> Callable[[str], Number]:
    """Reads numbers from `least` to `most`."""

    def number(text: str) -> Number:
        value = read(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} is not {range_in_words}")
        return value

    number.__name__ = name  # argparse says "invalid whole number value: 'many'"
    return number


_A_TINY_BIT = math.nextafter(0.0, 1.0)
_LARGEST = math.nextafter(math.inf, 0.0)

whole_number = _numbers(int, "whole number", 1, math.inf, "a positive number")
positive_number = _numbers(float, "number", _A_TINY_BIT, _LARGEST, "a positive number")
random_seed = _numbers(int, "whole number", 0, SEEDS - 1, f"a number from 0 to {SEEDS - 1}")


def table_console(width: int | None = None) -> Console:
    """Prints names as they are: a graph called "net [train]" says nothing about colours."""
    return Console(width=width, highlight=False, markup=False, emoji=False)


def add_search_arguments(parser: argparse.ArgumentParser, order: str, of: str, one: str) -> None:
    """How long schedules are searched for, and among which.

    Args:
        parser: of a command.
        order: the default.
        of: what is ordered, and how.
        one: what the time limit is for.
    """
    parser.add_argument("--order", choices=("fixed", "free"), default=order, help=of)
    parser.add_argument(
        "--time-limit",
        type=positive_number,
        default=60.0,
        metavar="S",
        help=f"seconds for {one} (default: 60)",
    )


def add_solver_arguments(parser: argparse.ArgumentParser) -> None:
    """What both `solve` and `compare` pass on to the solvers."""
    of = "of first computations: the graph's own (default), or any that its edges allow"
    add_search_arguments(parser, "fixed", of, "one solver and budget")
    parser.add_argument(
        "--seed", type=random_seed, default=0, metavar="N", help="of random numbers (default: 0)"
    )
    parser.add_argument(
        "--backend",
        default="",
        metavar="NAME",
        help="of the MILP and the LP: highs (default), cvxpy, cvxpy:SCIPY, gurobi, …",
    )
    add_solver_file(parser)


def add_plan_file(parser: argparse.ArgumentParser) -> None:
    """A plan that was written to a file."""
    parser.add_argument(
        "plan",
        type=Path,
        metavar="PLAN.json",
        help="of `checkmate-tf plan` or `solve`, or of step.plan.save",
    )


def add_solver_file(parser: argparse.ArgumentParser) -> None:
    """A file that registers solvers of the user's own."""
    parser.add_argument(
        "--solver-file", type=Path, metavar="FILE.py", help="registers solvers of your own"
    )


def prepare(arguments: argparse.Namespace) -> None:
    """What is done before a command runs, whichever of these arguments it has.

    Files that could not be written are refused, before hours are spent on what goes into them; and
    a file that registers solvers with `solvers.register` is run.

    Raises:
        CheckmateError: a file's folder does not exist, or it is a folder itself; a picture's name
            says no format that there is; a file of solvers can't be read, or fails, or registers
            nothing.
    """
    for name in ("output", "csv", "plot", "picture"):
        path: Path | None = getattr(arguments, name, None)
        if path is None:
            continue
        if not path.parent.is_dir():
            why = f"the folder {path.parent} does not exist"
            raise CheckmateError("file-unwritable", f"{path}: {why}")
        if path.is_dir():
            why = "is a folder; a file name is expected"
            raise CheckmateError("file-unwritable", f"{path}: {why}")
        if name in ("plot", "picture"):
            from checkmate_tf.picture_files import check_format  # matplotlib takes a while

            check_format(path)
    if getattr(arguments, "solver_file", None) is not None:
        _load_solvers(arguments.solver_file)


def _load_solvers(path: Path) -> None:
    known = len(SOLVERS)
    try:
        # Not a module that could be imported by name: so processes get its functions themselves.
        runpy.run_path(str(path))
    except CheckmateError as error:
        raise CheckmateError(error.code, f"{path}: {error}") from error
    except Exception as error:
        raise CheckmateError(
            "solver-file-fails", f"{path}: {type(error).__name__}: {error}"
        ) from error
    if len(SOLVERS) == known:
        raise CheckmateError(
            "solver-file-empty", f"{path}: registers no solver; decorate one with @solvers.register"
        )
