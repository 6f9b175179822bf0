"""Memory inside loops, branches and calls, each of which runs as one operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from checkmate_tf.trace.bodies import LOOPS, bodies, is_compiled
from checkmate_tf.trace.buffers import peak_of_run
from checkmate_tf.trace.program import Program, resolve_body
from checkmate_tf.trace.signatures import signature
from profiles.operation import Operation


def inner_workspaces(
    program: Program, workspace: Callable[[Operation], int]
) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """Bytes that each operation needs only while it runs, the functions that it runs included.

    Args:
        program: a resolved step.
        workspace: bytes that an operation by itself needs only while it runs.

    Returns:
        Bytes for each operation, and those operations whose bytes can't all be told.
    """
    unknown: dict[str, Any] = {}
    needed = []
    for operation, made in zip(program.operations, program.produced, strict=True):
        sized = program.sized[operation.name]
        most = workspace(signature(sized))
        # What a compiler makes of a function needs other memory than its operations would.
        for body in () if is_compiled(sized) else bodies(sized):
            if not body.is_sized:
                unknown[operation.name] = operation
                continue
            inner = resolve_body(body)
            inside, not_told = inner_workspaces(inner, workspace)
            if inner.guessed or not_told:
                unknown[operation.name] = operation
            everything = range(len(inner.operations))
            peak = peak_of_run(inner, everything, inner.outputs, inside.__getitem__)
            # A call returns what its body made. A loop holds what the iteration before made, too.
            returned = sum(each.bytes for each in made) if operation.type not in LOOPS else 0
            most = max(most, peak - returned)
        needed.append(most)
    return tuple(needed), tuple(unknown.values())
