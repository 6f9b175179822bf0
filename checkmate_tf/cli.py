"""The command `checkmate-tf`: what it accepts, and which exit status its outcome has.

0 solved; 2 bad usage or input; 3 infeasible; 4 no answer in time. `solve`, `compare`,
`solvers` and `profiles`, and `profile` of a saved graph, work without TensorFlow; the other
commands import it when they run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from solvers.errors import CheckmateError

SOLVED, BAD_INPUT, INFEASIBLE, NO_ANSWER = 0, 2, 3, 4

_TENSORFLOW = ("tensorflow", "keras")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit status.

    Example:
        >>> main(["solve", "nowhere.json", "--budget", "80%"])
        2
    """
    try:
        arguments = _parser().parse_args(argv)
        return _run(arguments)
    except SystemExit as stop:  # argparse ends this way, also after --help
        return stop.code if isinstance(stop.code, int) else BAD_INPUT
    except CheckmateError as error:
        return _complain(str(error))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _TENSORFLOW:
            raise
        return _complain(
            f"this command needs TensorFlow: pip install 'checkmate_tf[cpu]', or [gpu] ({error})"
        )
    except KeyboardInterrupt:
        print("checkmate-tf: stopped before there was an answer", file=sys.stderr)
        return NO_ANSWER


def _run(arguments: argparse.Namespace) -> int:
    """Import what the command needs and nothing else, and run it."""
    if arguments.command == "solve":
        from checkmate_tf.cli_solve import run_solve

        return run_solve(arguments)
    if arguments.command == "compare":
        from checkmate_tf.cli_compare import run_compare

        return run_compare(arguments)
    if arguments.command == "solvers":
        from checkmate_tf.cli_solvers import run_solvers

        return run_solvers()
    if arguments.command == "profile":
        from checkmate_tf.cli_profile import run_profile

        return run_profile(arguments)
    if arguments.command == "profiles":
        from checkmate_tf.cli_profiles import run_profiles

        return run_profiles(arguments)
    from checkmate_tf import commands

    if arguments.command == "extract":
        return commands.extract(
            arguments.function, arguments.batch_size, arguments.output, arguments.costs
        )
    return commands.demo()


def _complain(message: str) -> int:
    print(f"checkmate-tf: error: {' '.join(message.split())}", file=sys.stderr)
    return BAD_INPUT


class _Parser(argparse.ArgumentParser):
    """An argument parser whose complaints take one line."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: error: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(BAD_INPUT)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="checkmate-tf",
        description="Train within a memory budget: recompute values instead of keeping them.",
        epilog="Exit status: 0 solved; 2 bad usage or input; 3 infeasible; 4 no answer in time.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_solve(commands.add_parser("solve", help="find a schedule of a saved graph"))
    _add_compare(commands.add_parser("compare", help="run solvers side by side on saved graphs"))
    commands.add_parser("solvers", help="list the solvers")
    commands.add_parser("demo", help="rematerialize a small network and measure it")

    extract = commands.add_parser("extract", help="save the graph of a training step")
    extract.add_argument("function", metavar="MODULE:FUNCTION")
    extract.add_argument("--batch-size", type=_positive_int, metavar="N")
    extract.add_argument("--output", type=Path, required=True, metavar="FILE")
    extract.add_argument("--costs", default="roofline", metavar="roofline|flops|profile")

    _add_profile(commands.add_parser("profile", help="what the operations of a step cost"))
    _add_profiles(commands.add_parser("profiles", help="list, merge or clear stored profiles"))
    return parser


def _add_profile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="GRAPH|MODULE:FUNCTION")
    parser.add_argument("--device", metavar="CPU:0|GPU:0|TPU:0")
    parser.add_argument("--batch-size", type=_positive_int, metavar="N")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="a .png, .pdf or .svg")
    parser.add_argument("--again", action="store_true", help="measure also what is known")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="use it, and measure nothing")
    parser.add_argument(
        "--other-device", action="store_true", help="use it though it is of another device"
    )


def _add_profiles(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", help="devices, TensorFlow versions, files")
    merge = actions.add_parser("merge", help="several profiles of one device as one file")
    merge.add_argument("files", type=Path, nargs="+", metavar="FILE", help="later ones win")
    merge.add_argument("--output", type=Path, required=True, metavar="FILE")
    clear = actions.add_parser("clear", help="delete your own profiles; shipped ones stay")
    clear.add_argument("--device", metavar="NAME", help="as listed; all by default")


def _add_solve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("graph", type=Path, metavar="GRAPH", help="a JSON file")
    parser.add_argument("--budget", required=True, metavar="80%%|2GiB|BYTES|min")
    parser.add_argument("--solver", default="auto", metavar="NAME")
    parser.add_argument("--output", type=Path, metavar="PLAN.json")
    parser.add_argument(
        "--fallback",
        action="store_true",
        help="go on with HiGHS where the backend's licence does not do",
    )
    _add_common(parser)


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("graphs", type=Path, nargs="+", metavar="GRAPH", help="JSON files")
    parser.add_argument("--budget", nargs="+", required=True, metavar="80%%|2GiB|BYTES")
    parser.add_argument("--solver", nargs="+", default=["all"], metavar="all|NAME")
    parser.add_argument("--csv", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="a .png, .pdf or .svg")
    parser.add_argument("--jobs", type=_positive_int, default=1, metavar="N", help="runs at a time")
    _add_common(parser)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--time-limit", type=_positive_float, default=60.0, metavar="S")
    parser.add_argument("--order", choices=("fixed", "free"), default="fixed")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument(
        "--backend", default="", metavar="NAME", help="of the MILP: cvxpy, cvxpy:SCIPY, gurobi, …"
    )


def _positive_int(text: str) -> int:
    number = int(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def _positive_float(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


_positive_int.__name__ = "whole number"
_positive_float.__name__ = "number"
