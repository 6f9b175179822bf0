"""MODULE:FUNCTION, as commands name a train step of the user's."""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import sys
from typing import Any

from checkmate_tf.cli.arguments import whole_number
from solvers.errors import CheckmateError

STEP = (
    "a tf.function with an input_signature, or a function without arguments that returns one, or "
    "(step or compiled Keras model, example batch)"
)
"""What MODULE:FUNCTION may name."""


def add_step(parser: argparse.ArgumentParser) -> None:
    """What `load_step` reads."""
    parser.add_argument("function", metavar="MODULE:FUNCTION", help=STEP)


def add_batch_size(parser: argparse.ArgumentParser) -> None:
    """The size of batches that a signature leaves open."""
    parser.add_argument(
        "--batch-size",
        type=whole_number,
        metavar="N",
        help="of inputs whose first dimension is None",
    )


def load_traced(target: str, batch_size: int | None) -> Any:
    """The ConcreteFunction of the step behind MODULE:FUNCTION.

    It is for batches of any size where `batch_size`, the largest that occurs, is given.

    Raises:
        CheckmateError: there is no step, or its example does not fit it.
    """
    from checkmate_tf.sizing.arguments import parse_step
    from checkmate_tf.sizing.one_trace import traced_for

    step, batch = load_step(target)
    return traced_for(parse_step(step), batch, batch_size)


def load_step(target: str) -> tuple[Any, Any]:
    """The step behind MODULE:FUNCTION and an example batch, None where its signature says it.

    FUNCTION is as in `STEP`, or a ConcreteFunction.

    Raises:
        CheckmateError: it is none of these, or isn't there.
    """
    found = _found(target)
    if callable(found) and not hasattr(found, "get_concrete_function"):
        made = found if hasattr(found, "graph") else _made_by(found, target)
        if isinstance(made, tuple) and len(made) == 2:
            return made
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
    module_name, _, name = target.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except (ModuleNotFoundError, AttributeError, ValueError) as error:
        raise CheckmateError(
            "target-not-found", f"{target}: {error}; MODULE:FUNCTION is expected"
        ) from error
    return found
