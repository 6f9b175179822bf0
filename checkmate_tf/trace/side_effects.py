"""What a traced step changes, beside returning its outputs.

Calls, loops and branches are judged by their bodies.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from checkmate_tf.trace.bodies import RUN_FUNCTIONS, functions_of, functions_of_node
from checkmate_tf.trace.inputs import captures
from checkmate_tf.trace.operations import READ_ONLY, VIEWS, is_stateful
from profiles.operation_facts import facts
from profiles.tensorflow_internals import (
    function_definition,
    function_in_graph,
    operation_definition,
)


def changes_only_variables(concrete: Any) -> bool:
    """Whether running the step changes nothing but variables that it has captured."""
    return not any(map(_may_change_more, {node.op for node in _nodes(concrete)}))


def draws_by_seed(concrete: Any) -> bool:
    """Whether kernels draw random numbers that begin anew in another function: by a seed."""
    return any(
        facts(node.op).draws and (node.attr["seed"].i or node.attr["seed2"].i)
        for node in _nodes(concrete)
    )


def written_captures(concrete: Any) -> list[tuple[Any, Any]]:
    """(placeholder, captured tensor) of the resources that the step may write.

    That is all but those whose readers are known to read only. What a call, a loop or a branch
    is given counts as written if it writes anything.
    """
    operations = concrete.graph.get_operations()
    pending = [
        each
        for op in operations
        if op.type not in READ_ONLY | VIEWS and (op.type not in RUN_FUNCTIONS or is_stateful(op))
        for each in op.inputs
        if each.dtype == tf.resource
    ]
    written: set[str] = set()
    while pending:
        tensor = pending.pop()
        written.add(tensor.name)
        if tensor.op.type in VIEWS:
            pending += [each for each in tensor.op.inputs if each.dtype == tf.resource]
    return [pair for pair in captures(concrete) if pair[0].name in written]


def _may_change_more(kind: str) -> bool:
    """Whether operations of that type may change more than variables."""
    row = facts(kind)
    if row.buffer == "view" or row.variable or row.draws or row.runs or row.only_checks:
        return False
    definition = operation_definition(kind)
    return definition is None or bool(definition.is_stateful)


def _nodes(concrete: Any) -> Iterator[Any]:
    """NodeDefs of all operations of the step, those in the bodies of calls and loops included.

    A body that is not found is there by its name, which is no type.
    """
    graph = concrete.graph
    pending: list[str] = []
    for operation in graph.get_operations():
        yield operation.node_def
        pending += functions_of(operation)
    looked_at: set[str] = set()
    while pending:
        name = pending.pop()
        if name in looked_at:
            continue
        looked_at.add(name)
        function = function_in_graph(graph, name)
        if function is None:
            yield tf.compat.v1.NodeDef(op=name)
            continue
        for node in function_definition(function).node_def:
            yield node
            pending += functions_of_node(node)
