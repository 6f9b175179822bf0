"""Calls of functions inside a step, taken apart: their operations become operations of the step.

A `tf.function` inside a step, its gradient, and a SavedModel are each one operation in the traced
graph, a call. So that what they compute can be scheduled, it is written into the step in place
of the call, and so are the calls in it. Loops and branches stay as they are. So do functions that
XLA compiles: taken apart they would compute other bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tensorflow as tf

from checkmate_tf.trace.bodies import CALLS, is_compiled
from checkmate_tf.trace.depth_first import tensor_key
from checkmate_tf.trace.emission import Emitter, keep_what_is_known
from checkmate_tf.trace.operations import passed_through
from checkmate_tf.trace.sizes import topological
from profiles.tensorflow_internals import (
    body_of_function,
    captured_tensors,
    function_in_graph,
)


@dataclass(frozen=True)
class InlinedFunction:
    """A function without calls in it; what is used of a ConcreteFunction is here under its names.

    Attributes:
        original: the ConcreteFunction.
        graph: the operations.
        inputs: a placeholder for each of the original's.
        outputs: a tensor for each of the original's.
    """

    original: Any
    graph: Any
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]

    @property
    def name(self) -> str:
        """Of the original."""
        return str(self.original.name)

    @property
    def captured_inputs(self) -> Any:
        """What the original captured."""
        return self.original.captured_inputs

    @property
    def _captured_inputs(self) -> Any:
        """The same before functions for what is made anew at every call are called."""
        return captured_tensors(self.original)

    @property
    def function_type(self) -> Any:
        """The original's, which binds arguments."""
        return self.original.function_type

    @property
    def structured_outputs(self) -> Any:
        """The original's, whose structure tells how outputs are packed."""
        return self.original.structured_outputs


def inlined(concrete: Any) -> Any:
    """`concrete` with the bodies of all functions that it calls in place of the calls.

    Transpositions that leave every axis where it is are left out: their kernel hands on what it is
    given. Dense layers have them where a trace leaves a size open.

    A function that has neither is returned as it is. What a call waits for, its operations with
    side effects wait for, and those that read its arguments where it has none; what waits for the
    call, waits for those with side effects.

    Example:
        >>> import tensorflow as tf
        >>> inner = tf.function(lambda x: tf.tanh(x))
        >>> step = tf.function(lambda x: inner(inner(x)))
        >>> concrete = step.get_concrete_function(tf.TensorSpec((8,)))
        >>> kinds = [op.type for op in inlined(concrete).graph.get_operations()]
        >>> kinds.count("Tanh"), kinds.count("PartitionedCall")
        (2, 0)
    """
    operations = concrete.graph.get_operations()
    if not any(each.type in CALLS or _moves_no_axis(each, each.inputs) for each in operations):
        return concrete
    return _Inliner(concrete).run()


def as_traced(concrete: Any) -> Any:
    """The ConcreteFunction that `concrete` is, or was made of."""
    return concrete.original if isinstance(concrete, InlinedFunction) else concrete


def is_taken_apart(operation: Any) -> bool:
    """Whether `operation` is a call in whose place its function's operations can run."""
    return operation.type in CALLS and not is_compiled(operation)


@dataclass(frozen=True)
class _Function:
    """A function that is called, ready to be copied any number of times.

    Attributes:
        graph: its operations, imported from its definition.
        traced: the graph that it was traced to, if it is known; its operations know their lines.
    """

    graph: Any
    traced: Any | None

    @cached_property
    def operations(self) -> list[Any]:
        """In a topological order."""
        return topological(self.graph.get_operations())

    def original(self, operation: Any) -> Any | None:
        """What `operation` is in the traced graph."""
        try:
            return self.traced.get_operation_by_name(operation.name)  # type: ignore[union-attr]
        except (AttributeError, KeyError):
            return None


@dataclass
class _Place:
    """Where operations are copied to.

    Attributes:
        prefix: of their names.
        device: of those that name none.
        first: operations that those with side effects wait for.
        values: what stands for a tensor.
        done: what to wait for in place of an operation.
    """

    prefix: str
    device: str
    first: list[Any]
    values: dict[tuple[str, int], Any]
    done: dict[str, list[Any]]

    def inputs(self, operation: Any) -> list[Any]:
        return [self.values[tensor_key(each)] for each in operation.inputs]

    def before(self, operation: Any) -> list[Any]:
        """What the copy of `operation` has to wait for."""
        found = [each for other in operation.control_inputs for each in self.done[other.name]]
        if operation.op_def is None or operation.op_def.is_stateful:
            found += self.first
        return list(dict.fromkeys(found))

    def name(self, operation: Any) -> str:
        return f"{self.prefix}{operation.name}"


class _Inliner:
    """Copies a function's operations into a new graph, those of the functions it calls too."""

    def __init__(self, concrete: Any) -> None:
        self.concrete = concrete
        self.source = concrete.graph
        self.target = tf.Graph()
        self.emitter = Emitter(self.source, self.target)
        self.functions: dict[str, _Function] = {}

    def run(self) -> InlinedFunction:
        place = _Place("", "", [], {}, {})
        with self.target.as_default():
            for operation in topological(self.source.get_operations()):
                self._copy(operation, place)
        inputs, outputs = (
            tuple(place.values[tensor_key(each)] for each in tensors)
            for tensors in (self.concrete.inputs, self.concrete.outputs)
        )
        return InlinedFunction(self.concrete, self.target, inputs, outputs)

    def _copy(self, operation: Any, place: _Place, original: Any | None = None) -> None:
        if is_taken_apart(operation):
            self._copy_body(operation, place)
            return
        if _key_of_input(operation) in place.values:
            place.done[operation.name] = []
            return
        inputs = place.inputs(operation)
        if _moves_no_axis(operation, inputs):
            place.values[tensor_key(operation.outputs[0])] = inputs[0]
            place.done[operation.name] = [inputs[0].op]
            return
        copy = self.emitter.create(
            operation,
            inputs,
            place.before(operation),
            name=place.name(operation),
            device=operation.device or place.device,
        )
        if original is not None:
            self.emitter.copy_traceback(original, copy)
        for original, made in zip(operation.outputs, copy.outputs, strict=True):
            keep_what_is_known(original, made)
            place.values[tensor_key(original)] = made
        if operation.type in CALLS:
            self._look_behind(operation, place)
        place.done[operation.name] = [copy]

    def _look_behind(self, call: Any, place: _Place) -> None:
        """Let readers of what a compiled call returns as it was given read what it was given.

        XLA returns copies, and the gradient of a call is given those of all that it reads.
        """
        graph = self._function(call.get_attr("f").name).graph
        given = dict(zip(map(tensor_key, graph.inputs), place.inputs(call), strict=True))
        for original, returned in zip(call.outputs, graph.outputs, strict=True):
            key = tensor_key(passed_through(returned))
            if key in given:
                place.values[tensor_key(original)] = given[key]

    def _copy_body(self, call: Any, place: _Place) -> None:
        """Copy the operations of the function that `call` runs, in its place."""
        function = self._function(call.get_attr("f").name)
        before = place.before(call)
        given = place.inputs(call)
        if before and not call.op_def.is_stateful:
            given = self._after(before, given)
        arguments = zip(map(tensor_key, function.graph.inputs), given, strict=True)
        inside = _Place(
            prefix=f"{place.name(call)}/",
            device=call.device or place.device,
            first=before,
            values=dict(arguments),
            done={},
        )
        for operation in function.operations:
            self._copy(operation, inside, function.original(operation))
        for original, returned in zip(call.outputs, function.graph.outputs, strict=True):
            made = inside.values[tensor_key(returned)]
            keep_what_is_known(original, made)
            place.values[tensor_key(original)] = made
        last = [each for op in function.graph.control_outputs for each in inside.done[op.name]]
        place.done[call.name] = self._joined(last or before, place.name(call))

    def _after(self, operations: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
        """The tensors, for readers that wait for `operations`."""
        with self.target.control_dependencies(list(operations)):
            return [tf.identity(each) for each in tensors]

    def _joined(self, operations: Sequence[Any], name: str) -> list[Any]:
        """One operation that waits for them all, so that many waiting for many stay few edges."""
        if len(operations) < 2:
            return list(operations)
        with self.target.control_dependencies(list(operations)):
            return [tf.no_op(name=f"{name}/done")]

    def _function(self, name: str) -> _Function:
        if name not in self.functions:
            function = function_in_graph(self.source, name)
            with self.source.as_default():  # where the functions are that it calls itself
                graph = body_of_function(function, None)
            self.functions[name] = _Function(graph, getattr(function, "graph", None))
        return self.functions[name]


def _moves_no_axis(operation: Any, inputs: Sequence[Any]) -> bool:
    """Whether it is a transposition that leaves every axis where it is, and waits for nothing."""
    if operation.type != "Transpose" or operation.control_inputs:
        return False
    axes = inputs[1]
    if axes.op.type == "InvertPermutation":
        axes = axes.op.inputs[0]
    known = tf.get_static_value(axes)
    return known is not None and known.tolist() == [*range(len(known))]


def _key_of_input(operation: Any) -> tuple[str, int] | None:
    """The key of what a placeholder stands for; None for all other operations."""
    return tensor_key(operation.outputs[0]) if operation.type == "Placeholder" else None
