"""Loops that are given steps to run: what runs in them can be planned, the whole of them can't."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from checkmate_tf.trace.bodies import BRANCHES, LOOPS, functions_of, functions_of_node
from checkmate_tf.trace.inlining import inlined
from checkmate_tf.trace.operations import describe
from profiles.tensorflow_internals import function_definition, function_in_graph

_GRADIENT = "gradient"
"""Is in the name of every operation that TensorFlow makes for a gradient."""


def why_nothing_can_be_recomputed(concrete: Any) -> str:
    """What to decorate instead of a step that is one loop, or no step; "" where that is unknown.

    Example:
        >>> import tensorflow as tf
        >>> forward = tf.function(lambda x: tf.sin(x)).get_concrete_function(tf.TensorSpec((8,)))
        >>> why_nothing_can_be_recomputed(forward)
        '. It computes no gradient: decorate the function that does'
    """
    operations = inlined(concrete).graph.get_operations()
    loop = next((each for each in operations if computes_gradients(each)), None)
    if loop is not None:
        return f". {describe(loop)} runs as a whole: decorate the function that is called in it"
    if not any(_GRADIENT in each.name for each in operations):
        return ". It computes no gradient: decorate the function that does"
    whole = next((each for each in operations if each.type in LOOPS | BRANCHES), None)
    return "" if whole is None else f". {describe(whole)} runs as a whole (docs/memory.md)"


def computes_gradients(operation: Any) -> bool:
    """Whether a function that `operation` runs computes the gradient of something in it."""
    if _GRADIENT in operation.name:
        return False  # it is itself part of a gradient
    return any(_GRADIENT in name for name in _names_inside(operation))


def _names_inside(operation: Any) -> Iterator[str]:
    """Names of the operations of all functions that `operation` runs, and that those run."""
    pending = functions_of(operation)
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        function = None if name in seen else function_in_graph(operation.graph, name)
        seen.add(name)
        if function is None:
            continue
        for node in function_definition(function).node_def:
            yield node.name
            pending += functions_of_node(node)
