"""The command `checkmate-tf`: one subcommand a file, and one exit status for every outcome.

0 solved; 2 bad usage or input; 3 infeasible; 4 no answer in time; 1 where `doctor` or `demo` finds
that something does not work. `solve`, `compare`, `show`, `explain`, `plans`, `solvers`, `profiles`
and `doctor`, and `profile` of a saved graph, work without TensorFlow; the other commands import it
when they run.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
import types
from collections.abc import Sequence
from typing import NoReturn

from checkmate_tf.cli.arguments import BAD_INPUT, NO_ANSWER, SOLVED, prepare
from checkmate_tf.progress import said_in_lines
from checkmate_tf.version import __version__
from solvers.errors import CheckmateError

# Each is a module of this folder with `add_arguments(parser)` and `run(arguments) -> int`.
_COMMANDS = {
    "solve": "find a schedule of a saved graph",
    "compare": "run solvers side by side on saved graphs",
    "explain": "why a layer is kept or recomputed by a plan",
    "show": "what a plan keeps and recomputes, and a picture of it",
    "solvers": "list the solvers",
    "doctor": "what is installed here, and whether it works",
    "demo": "rematerialize a small network and measure it",
    "extract": "save the graph of a training step",
    "plan": "plan a training step ahead of time, into a file",
    "memory": "what a step of a batch holds, and the batches that devices hold",
    "tradeoff": "budget against extra time: a table, a picture, plans",
    "plans": "list or clear the plans that were kept",
    "largest-batch": "the largest batch of a step that fits some bytes",
    "profile": "what the operations of a step cost",
    "profiles": "list, merge or clear stored profiles",
}

_TENSORFLOW = ("tensorflow", "keras")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit status.

    Example:
        >>> main(["solve", "nowhere.json", "--budget", "80%"])
        2
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # a sign that its encoding lacks is a "?"
        sys.stdout.reconfigure(errors="replace")
    try:
        arguments = parser().parse_args(argv)
        prepare(arguments)
        with said_in_lines():
            status: int = _command(arguments.command).run(arguments)
        sys.stdout.flush()
        return status
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
    except BrokenPipeError:  # `checkmate-tf … | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SOLVED
    except KeyboardInterrupt:
        print("checkmate-tf: stopped before there was an answer", file=sys.stderr)
        return NO_ANSWER


def parser() -> argparse.ArgumentParser:
    """Of all commands."""
    parser = _Parser(
        prog="checkmate-tf",
        description="Train within a memory budget: recompute values instead of keeping them.",
        epilog="Exit status: 0 solved; 2 bad usage or input; 3 infeasible; 4 no answer in time; "
        "1 something does not work (doctor, demo).",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in _COMMANDS.items():
        _command(name).add_arguments(commands.add_parser(name, help=summary))
    return parser


def _command(name: str) -> types.ModuleType:
    return importlib.import_module(f"checkmate_tf.cli.{name.replace('-', '_')}")


class _Parser(argparse.ArgumentParser):
    """An argument parser whose complaints take one line."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: error: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(BAD_INPUT)


def _complain(message: str) -> int:
    print(f"checkmate-tf: error: {' '.join(message.split())}", file=sys.stderr)
    return BAD_INPUT
