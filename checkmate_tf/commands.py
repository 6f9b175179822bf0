"""The commands of `checkmate-tf` that need TensorFlow: extract, profile, demo."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from solvers.errors import CheckmateError

_SHOWN = 20


def demo() -> int:
    """Train within a memory budget; see `experiments.demo`."""
    from experiments.demo import main

    return main([])


def extract(function: str, batch_size: int | None, output: Path) -> int:
    """Save the computation graph of MODULE:FUNCTION."""
    from checkmate_tf.extraction import extract as extract_graph

    graph = extract_graph(load_concrete(function), batch_size)
    graph.save(output)
    print(f"{output}: {len(graph)} nodes, {len(graph.edges)} edges")
    return 0


def profile(target: str, device: str) -> int:
    """Measure the operations of MODULE:FUNCTION; the longest ones as a table."""
    from checkmate_tf.program import resolve
    from checkmate_tf.signatures import signature
    from profiles.measurement import Measurement, NotMeasurableError, measure
    from profiles.operation import Operation
    from solvers import format_bytes

    if ":" not in target:
        raise CheckmateError(
            f"{target}: a saved graph has no operations to run; profile a MODULE:FUNCTION"
        )
    program = resolve(load_concrete(target))
    counts: dict[Operation, int] = {}
    for operation in program.operations:
        key = signature(program.sized[operation.name])
        counts[key] = counts.get(key, 0) + 1
    measured: dict[Operation, Measurement] = {}
    skipped = 0
    for key in track(counts, "measuring", console=Console(stderr=True), transient=True):
        try:
            measured[key] = measure(key, device)
        except NotMeasurableError:
            skipped += counts[key]
    table = Table(title=f"{device}: where the time goes")
    for heading in ("operation", "output", "runs", "ms each", "ms in all", "workspace"):
        table.add_column(heading, justify="left" if heading in ("operation",) else "right")
    for key in sorted(measured, key=lambda k: -counts[k] * measured[k].seconds)[:_SHOWN]:
        seconds, workspace = measured[key].seconds, measured[key].workspace
        shape = "×".join(map(str, key.outputs[0].shape)) if key.outputs else ""
        table.add_row(
            key.type,
            shape,
            str(counts[key]),
            f"{1000 * seconds:.2f}",
            f"{1000 * seconds * counts[key]:.1f}",
            "unknown" if workspace is None else format_bytes(workspace),
        )
    Console().print(table)
    total = sum(counts[key] * each.seconds for key, each in measured.items())
    print(f"{len(measured)} distinct operations, {total:.3f} s one after the other", end="")
    print(f"; {skipped} runs could not be measured by themselves" if skipped else "")
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
