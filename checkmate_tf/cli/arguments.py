"""What commands share: exit statuses, arguments, and what is refused before any work is done."""

from __future__ import annotations

import argparse
import runpy
from pathlib import Path

from solvers.api import SEEDS, SOLVERS
from solvers.errors import CheckmateError

# The exit statuses of `checkmate-tf`, which scripts rely on.
SOLVED = 0
BAD_INPUT = 2
INFEASIBLE = 3
NO_ANSWER = 4


def whole_number(text: str) -> int:
    """A positive whole number."""
    number = int(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def positive_number(text: str) -> float:
    """A positive number that is finite."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def random_seed(text: str) -> int:
    """A seed of random numbers, which is not negative."""
    number = int(text)
    if not 0 <= number < SEEDS:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 to {SEEDS - 1}")
    return number


# argparse says "invalid whole number value: 'many'".
whole_number.__name__ = "whole number"
positive_number.__name__ = "number"
random_seed.__name__ = "whole number"


def add_solver_arguments(parser: argparse.ArgumentParser) -> None:
    """What both `solve` and `compare` pass on to the solvers."""
    parser.add_argument(
        "--time-limit",
        type=positive_number,
        default=60.0,
        metavar="S",
        help="seconds for one solver and budget (default: 60)",
    )
    parser.add_argument(
        "--order",
        choices=("fixed", "free"),
        default="fixed",
        help="of first computations: the graph's own (default), or any that its edges allow",
    )
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


def add_planning_arguments(parser: argparse.ArgumentParser, trial_run: bool = True) -> None:
    """How plans of a step are searched for, and whether they run for trial, as by default."""
    parser.add_argument(
        "--order", choices=("fixed", "free"), default="free", help="of operations (default: free)"
    )
    parser.add_argument(
        "--time-limit",
        type=positive_number,
        default=60.0,
        metavar="S",
        help="seconds for a search (default: 60)",
    )
    parser.add_argument(
        "--trial-run",
        action=argparse.BooleanOptionalAction,
        default=trial_run,
        help="let plans run for trial, on copies of the variables, or forecast them only "
        f"(default: {'--trial-run' if trial_run else '--no-trial-run'})",
    )


def add_solver_file(parser: argparse.ArgumentParser) -> None:
    """A file that registers solvers of the user's own."""
    parser.add_argument(
        "--solver-file", type=Path, metavar="FILE.py", help="registers solvers of your own"
    )


def load_solver_file(path: Path | None) -> None:
    """Run a file that registers solvers with `solvers.register`, if one is given.

    Raises:
        CheckmateError: it can't be read, or fails, or registers nothing.
    """
    if path is None:
        return
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


def check_picture(path: Path) -> None:
    """As `check_folder`, for a picture: there must be such a format, too.

    Raises:
        CheckmateError: there is none, its folder does not exist, or it is a folder itself.
    """
    check_folder(path)
    from checkmate_tf.picture_files import check_format  # matplotlib takes a while

    check_format(path)


def check_folder(path: Path) -> None:
    """Refuse a file that could not be written, before hours are spent on what goes into it.

    Raises:
        CheckmateError: its folder does not exist, or it is a folder itself.
    """
    if not path.parent.is_dir():
        raise CheckmateError("file-unwritable", f"{path}: the folder {path.parent} does not exist")
    if path.is_dir():
        raise CheckmateError("file-unwritable", f"{path}: is a folder; a file name is expected")
