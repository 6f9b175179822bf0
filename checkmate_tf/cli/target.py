"""MODULE:FUNCTION, as commands name a train step of the user's, and how it is planned."""

from __future__ import annotations

import argparse
import inspect
import os
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from checkmate_tf.cli.arguments import add_search_arguments, whole_number
from solvers.errors import CheckmateError

if TYPE_CHECKING:
    from checkmate_tf.trace.program import Program
    from profiles.profile import Profile

STEP = (
    "a tf.function with an input_signature, a compiled Keras model, or a function without "
    "arguments that returns one of these, or (step or model, example batch)"
)
"""What MODULE:FUNCTION may name."""


def add_step(parser: argparse.ArgumentParser) -> None:
    """What `load_program` reads: a step, and the size of batches that a signature leaves open."""
    parser.add_argument("function", metavar="MODULE:FUNCTION", help=STEP)
    add_batch_size(parser)


def add_batch_size(parser: argparse.ArgumentParser) -> None:
    """The size of batches that a signature leaves open."""
    parser.add_argument(
        "--batch-size",
        type=whole_number,
        metavar="N",
        help="of inputs whose first dimension is None",
    )


def add_costs(parser: argparse.ArgumentParser) -> None:
    """What operations cost, on this device or on another one."""
    parser.add_argument(
        "--costs",
        metavar="MODEL|PROFILE",
        help="device (default) or profile, measured on this device: its ceilings, or each "
        "operation; roofline (default for a device that is not here), roofline:GPU (or CPU, TPU) "
        "for one of another kind, flops, or a profile: its file, or its device or file name as "
        "`checkmate-tf profiles list` shows them",
    )
    parser.add_argument(
        "--other-device", action="store_true", help="take a profile though it is of another device"
    )


def add_planning_arguments(parser: argparse.ArgumentParser, trial_run: bool = True) -> None:
    """How plans of a step are searched for, and whether they run for trial, as by default."""
    add_costs(parser)
    add_search_arguments(parser, "free", "of operations (default: free)", "a search")
    parser.add_argument(
        "--trial-run",
        action=argparse.BooleanOptionalAction,
        default=trial_run,
        help="let plans run for trial, on copies of the variables, or forecast them only "
        f"(default: {'--trial-run' if trial_run else '--no-trial-run'})",
    )


def add_solver_and_place(parser: argparse.ArgumentParser) -> None:
    """Whose schedules are taken, and whether the device is here."""
    parser.add_argument(
        "--solver", default="auto", metavar="NAME", help="of schedules (default: auto)"
    )
    parser.add_argument(
        "--elsewhere",
        action="store_true",
        help="plan for a device that holds nothing but the step; nothing runs on this one",
    )


def cost_model(arguments: argparse.Namespace, elsewhere: bool = False) -> str | Profile:
    """What `--costs` stands for: the name of a cost model, or a profile.

    Args:
        arguments: with those of `add_costs`.
        elsewhere: the step is to run on a device that is not here.

    Raises:
        CheckmateError: there is no such thing, or it is the profile of another device and that
            was not asked for.
    """
    from checkmate_tf.graph.cost_models import check_cost_model, default_costs, load_profile
    from profiles.store import named_file

    costs: str | None = arguments.costs
    if costs is None:
        return default_costs(elsewhere)
    path = named_file(costs) or (Path(costs) if costs.endswith(".json") else None)
    if path is None:
        check_cost_model(costs)
        return costs
    return load_profile(path, arguments.other_device or elsewhere)


def load_program(target: str, batch_size: int | None) -> Program:
    """The program of the step behind MODULE:FUNCTION.

    It is for batches of any size where `batch_size`, the largest that occurs, is given.

    Raises:
        CheckmateError: there is no step, or its example does not fit it.
    """
    from checkmate_tf.sizing.arguments import parse_step
    from checkmate_tf.sizing.one_trace import traced_for
    from checkmate_tf.trace.program import resolve

    step, batch = load_step(target)
    return resolve(traced_for(parse_step(step), batch, batch_size), batch_size)


def load_step(target: str) -> tuple[Any, Any]:
    """The step behind MODULE:FUNCTION and an example batch, None where its signature says it.

    FUNCTION is as in `STEP`, or a ConcreteFunction.

    Raises:
        CheckmateError: it is none of these, or isn't there.
    """
    found = _found(target)
    if hasattr(found, "make_train_function"):  # a Keras model
        return found, None
    if callable(found) and not hasattr(found, "get_concrete_function"):
        made = found if hasattr(found, "graph") else _made_by(found, target)
        if isinstance(made, tuple) and len(made) == 2:
            return made
        if hasattr(made, "make_train_function"):
            return made, None
        found = made
    has_signature = getattr(found, "input_signature", None) is not None
    if not has_signature and not hasattr(found, "structured_outputs"):
        raise CheckmateError("not-a-step", f"{target} gives no step; give {STEP}")
    return found, None


def _made_by(found: Any, target: str) -> Any:
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        raise CheckmateError(
            "not-a-step", f"{target} can't be called without arguments; give {STEP}"
        ) from error
    return found()


def _found(target: str) -> Any:
    sys.path.insert(0, os.getcwd())
    try:
        if not target.partition(":")[2]:
            raise ValueError("no function is named")
        return resolve_name(target)
    except (ModuleNotFoundError, AttributeError, ValueError) as error:
        raise CheckmateError(
            "target-not-found", f"{target}: {error}; MODULE:FUNCTION is expected"
        ) from error
