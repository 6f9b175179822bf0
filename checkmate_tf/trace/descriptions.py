"""What a traced step is for a person: its batch, its optimizer, and where its update begins."""

from __future__ import annotations

import re
from collections import Counter

from checkmate_tf.trace.inputs import argument_placeholders
from checkmate_tf.trace.program import Program

_UPDATES = ("Assign", "ResourceApply", "ResourceSparseApply", "If", "StatelessIf")
"""Beginnings of the types by which optimizers write; those that accumulate gradients branch."""


def batch_of(program: Program) -> int | None:
    """The first dimension of the first argument that has one."""
    for placeholder in argument_placeholders(program.concrete):
        shape = program.sized[placeholder.op.name].outputs[0].shape
        if shape.rank:
            return int(shape[0])
    return None


def optimizer_of(program: Program) -> str:
    """The name scope in which variables are updated, as Keras' optimizers have one; else ""."""
    paths = [each.name.split("/") for each in program.operations]
    layers = {path[1] for path in paths if path[0] == "gradient_tape" and len(path) > 1}
    scopes = Counter(
        path[0]
        for path, operation in zip(paths, program.operations, strict=True)
        if len(path) == 2 and operation.type.startswith(_UPDATES) and path[0] not in layers
    )
    return re.sub(r"_\d+$", "", scopes.most_common(1)[0][0]) if scopes else ""


def update_of(program: Program) -> frozenset[str]:
    """Names of the operations that wait for a gradient and are none, as an optimizer's are."""
    follows: list[bool] = []
    found = set()
    for number, operation in enumerate(program.operations):
        is_gradient = "gradient" in operation.name
        is_behind = any(follows[each] for each in program.before(number))
        follows.append(is_behind or is_gradient)
        if is_behind and not is_gradient:
            found.add(operation.name)
    return frozenset(found)
