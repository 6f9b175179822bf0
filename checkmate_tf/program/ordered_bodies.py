"""Loops, branches and calls in which operations with workspaces run one after the other.

TensorFlow runs the operations inside a function as soon as their inputs are there, as many at once
as it has threads, and their workspaces add up: sixteen gradients of convolutions are ready at once
in each iteration of a convolutional LSTM's gradient. So the functions get control edges, in the
order in which their memory is counted (`checkmate_tf/trace/nested.py`), and a loop begins no
iteration before the last one has ended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any
from weakref import WeakValueDictionary

import tensorflow as tf

from checkmate_tf.trace.bodies import LOOPS, RUN_FUNCTIONS, Body, bodies, is_compiled
from checkmate_tf.trace.program import Program, resolve_body
from checkmate_tf.trace.signatures import signature
from profiles.measure.workspaces import SMALLEST
from profiles.operation_facts import facts
from profiles.tensorflow_internals import (
    copy_of_definition,
    function_definition,
    function_in_graph,
    function_of_definition,
)

_MADE: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Functions by name: a step is emitted several times while it is planned."""


def attributes_in_order(operation: Any) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """What makes `operation`, whose shapes are known, run its large operations one by one.

    Returns:
        Attributes that replace its own, and the functions that they name; nothing where there is
        no large operation inside, or where a compiler orders them.
    """
    if operation.type not in RUN_FUNCTIONS or is_compiled(operation):
        return {}, ()
    made = {}
    for body in bodies(operation):
        function = _in_order(body, operation.graph) if body.is_sized else None
        if function is not None:
            made[body.name] = function
    if not made:
        return {}, ()
    names = {name: function.name for name, function in made.items()}
    changed = dict(_renamed(operation.node_def.attr, names))
    if operation.type in LOOPS:
        changed["parallel_iterations"] = tf.compat.v1.AttrValue(i=1)
    return changed, tuple(made.values())


def _in_order(body: Body, graph: Any) -> Any | None:
    """The function of `body` with control edges; None if there is no large operation in it."""
    program = resolve_body(body)
    large = [each.name for each in program.operations if _is_large(program, each)]
    inside = {}
    for each in program.operations:
        changed, functions = attributes_in_order(program.sized[each.name])
        if functions:
            inside[each.name] = changed, functions
    if not large and not inside:
        return None
    definition = copy_of_definition(function_definition(function_in_graph(graph, body.name)))
    nodes = {node.name: node for node in definition.node_def}
    if not {*large, *inside} <= nodes.keys():
        return None
    for earlier, later in pairwise(large):
        nodes[later].input.append(f"^{earlier}")
    for name, (changed, _) in inside.items():
        for attribute, value in changed.items():
            nodes[name].attr[attribute].CopyFrom(value)
    content = definition.SerializeToString(deterministic=True)
    definition.signature.name += f"_in_order_{hashlib.sha256(content).hexdigest()[:16]}"
    called = [function for _, functions in inside.values() for function in functions]
    return _made(definition, called, graph)


def _is_large(program: Program, operation: Any) -> bool:
    if facts(operation.type).workspace in ("none", "little"):
        return False
    return signature(program.sized[operation.name]).bytes_moved >= SMALLEST


def _made(definition: Any, called: list[Any], graph: Any) -> Any:
    name = definition.signature.name
    function = _MADE.get(name)
    if function is None:
        with graph.as_default():  # where the functions are that it runs itself
            function = function_of_definition(definition, called)
        _MADE[name] = function
    return function


def _renamed(attributes: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    """Those attributes that name functions, with other names."""
    changed = {}
    for attribute, value in attributes.items():
        copy = tf.compat.v1.AttrValue()
        copy.CopyFrom(value)
        for each in (copy.func, *copy.list.func) if copy.HasField("func") else copy.list.func:
            each.name = names.get(each.name, each.name)
        if copy != value:
            changed[attribute] = copy
    return changed
