"""Sets of types of operations, and whether running one twice differs from running it once.

What each set means is said in the table that they are made of: `profiles.operation_facts`.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from checkmate_tf.trace.bodies import RUN_FUNCTIONS, functions_of, functions_of_node
from profiles.operation_facts import types
from profiles.tensorflow_internals import (
    function_definition,
    function_in_graph,
    operation_definition,
)

VIEWS = types(lambda each: each.buffer == "view")
NO_GRADIENTS = types(lambda each: each.stops_gradients)
PASS_THROUGH = types(lambda each: each.is_its_input)
SOURCES = types(lambda each: each.buffer == "given")
READ_ONLY = types(lambda each: each.variable == "reads")
READS = READ_ONLY & SOURCES  # their output shares the variable's buffer
OVERWRITES = types(lambda each: each.variable == "overwrites")
COPIES_ITS_INPUTS = types(lambda each: each.workspace == "copies")
ELEMENTWISE = types(lambda each: each.buffer == "in place")

_PACKAGES = Path(__file__).parents[2]

_NOT_THE_USERS = (
    "/tensorflow/",
    "/keras/",
    *(f"{_PACKAGES / package}{os.sep}" for package in ("checkmate_tf", "profiles", "solvers")),
)
"""Parts of the names of files whose lines the user hasn't written."""

_FUNCTIONS: WeakKeyDictionary[Any, dict[str, bool]] = WeakKeyDictionary()
"""By graph: whether functions in it are stateful."""


def is_stateful(operation: Any) -> bool:
    """Whether running the operation twice differs from running it once.

    What runs functions is judged by what they do, not by its type.
    """
    if operation.type not in RUN_FUNCTIONS:
        return _is_stateful_type(operation.type)
    known = _FUNCTIONS.setdefault(operation.graph, {})
    names = functions_of(operation)
    return any(_is_stateful_function(operation.graph, name, known) for name in names)


def _is_stateful_function(graph: Any, name: str, known: dict[str, bool]) -> bool:
    if name not in known:
        function = function_in_graph(graph, name)
        known[name] = function is None or any(
            any(_is_stateful_function(graph, inner, known) for inner in functions_of_node(node))
            if node.op in RUN_FUNCTIONS
            else _is_stateful_type(node.op)
            for node in function_definition(function).node_def
        )
    return known[name]


@functools.cache
def _is_stateful_type(kind: str) -> bool:
    definition = operation_definition(kind)
    return definition is None or (bool(definition.is_stateful) and kind not in READ_ONLY)


def under_views(tensor: Any) -> Any:
    """The tensor whose buffer `tensor` shares."""
    while tensor.op.type in VIEWS:
        tensor = tensor.op.inputs[tensor.value_index]
    return tensor


def passed_through(tensor: Any) -> Any:
    """The tensor that `tensor` is, under names that say nothing; checks and reshapes say more."""
    while tensor.op.type in PASS_THROUGH:
        tensor = tensor.op.inputs[tensor.value_index]
    return tensor


def describe(operation: Any) -> str:
    """An operation as an error message names it: its name, type and the user's line.

    Of a layer of Keras it is the line that calls `fit`: this package's, below it, say nothing.
    """
    line = users_line(operation)
    where = f", made at {line}" if line else ""
    return f"{operation.name!r} ({operation.type}{where})"


def users_line(operation: Any) -> str:
    """The line of the user's program that made an operation, "file:line"; "" where none did."""
    for frame in reversed(operation.traceback or []):
        if not any(part in frame.filename for part in _NOT_THE_USERS):
            return f"{frame.filename}:{frame.lineno}"
    return ""
