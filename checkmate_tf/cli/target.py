"""MODULE:FUNCTION, as commands name a train step of the user's."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import Any

from checkmate_tf.cli.arguments import whole_number
from solvers.errors import CheckmateError

TRACED = (
    "a ConcreteFunction, a tf.function with an input_signature, or a function without arguments "
    "that returns one of these"
)
"""What MODULE:FUNCTION may name."""


def add_step(parser: argparse.ArgumentParser) -> None:
    """What `load_step` reads."""
    parser.add_argument(
        "function",
        metavar="MODULE:FUNCTION",
        help="a tf.function with an input_signature, or a function without arguments that returns "
        "one, or (step or compiled Keras model, example batch)",
    )


def add_batch_size(parser: argparse.ArgumentParser) -> None:
    """The size of batches that a signature leaves open."""
    parser.add_argument(
        "--batch-size",
        type=whole_number,
        metavar="N",
        help="of inputs whose first dimension is None",
    )


def load_concrete(target: str) -> Any:
    """The ConcreteFunction behind MODULE:FUNCTION.

    FUNCTION is as in `TRACED`.

    Raises:
        CheckmateError: it is none of these, or isn't there.
    """
    found = _found(target)
    is_traced = hasattr(found, "get_concrete_function") or hasattr(found, "graph")
    if callable(found) and not is_traced:
        found = found()
    if getattr(found, "input_signature", None) is not None:
        found = found.get_concrete_function()
    if not hasattr(found, "structured_outputs"):
        raise CheckmateError(f"{target} is not a step; give {TRACED}")
    return found


def load_step(target: str) -> tuple[Any, Any]:
    """The step behind MODULE:FUNCTION and an example batch, None where its signature says it.

    FUNCTION is as for `load_concrete`, or a function without arguments that returns (step, example
    batch); the step is a function or a compiled Keras model.

    Raises:
        CheckmateError: it is none of these, or isn't there.
    """
    found = _found(target)
    if callable(found) and not hasattr(found, "get_concrete_function"):
        made = found if hasattr(found, "graph") else found()
        if isinstance(made, tuple) and len(made) == 2:
            return made
        found = made
    has_signature = getattr(found, "input_signature", None) is not None
    if not has_signature and not hasattr(found, "structured_outputs"):
        raise CheckmateError(
            f"{target} gives no step: give a tf.function with an input_signature whose batch is "
            "None, or a function without arguments that returns one, or (step, example batch)"
        )
    return found, None


def _found(target: str) -> Any:
    module_name, _, name = target.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except (ModuleNotFoundError, AttributeError, ValueError) as error:
        raise CheckmateError(f"{target}: {error}; MODULE:FUNCTION is expected") from error
    return found
