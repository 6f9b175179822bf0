"""The commands of `checkmate-tf` that always need TensorFlow: extract and demo."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from solvers.errors import CheckmateError


def demo() -> int:
    """Train within a memory budget; see `experiments.demo`."""
    from experiments.demo import main

    return main([])


def extract(function: str, batch_size: int | None, output: Path, costs: str = "roofline") -> int:
    """Save the computation graph of MODULE:FUNCTION, with costs by a named model."""
    from checkmate_tf.cost_models import step_costs
    from checkmate_tf.extraction import extract_program
    from checkmate_tf.program import resolve

    program = resolve(load_concrete(function), batch_size)
    step = step_costs(costs, program)
    graph = extract_program(program, step.model).graph
    graph.save(output)
    print(f"{output}: {len(graph)} nodes, {len(graph.edges)} edges")
    for note in step.notes:
        print(f"note: {note}", file=sys.stderr)
    return 0


def load_concrete(target: str) -> Any:
    """The ConcreteFunction behind MODULE:FUNCTION.

    FUNCTION is a ConcreteFunction, a tf.function with an input_signature, or a function without
    arguments that returns one of these.

    Raises:
        CheckmateError: it is none of these, or isn't there.
    """
    module_name, _, name = target.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except (ModuleNotFoundError, AttributeError, ValueError) as error:
        raise CheckmateError(f"{target}: {error}; MODULE:FUNCTION is expected") from error
    is_traced = hasattr(found, "get_concrete_function") or hasattr(found, "graph")
    if callable(found) and not is_traced:
        found = found()
    if getattr(found, "input_signature", None) is not None:
        found = found.get_concrete_function()
    if not hasattr(found, "structured_outputs"):
        raise CheckmateError(
            f"{target} is not a ConcreteFunction; give one, a tf.function with an "
            "input_signature, or a function without arguments that returns one of these"
        )
    return found
