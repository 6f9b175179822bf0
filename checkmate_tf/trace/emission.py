"""Create copies of a traced function's operations in another graph.

A ConcreteFunction's graph can't be edited: its FunctionDef is already built, so an edit would
never run. Its operations are therefore created again, from their types and attributes, on
tensors of the graph that is being built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from checkmate_tf.trace.bodies import functions_of
from checkmate_tf.trace.depth_first import tensor_key
from checkmate_tf.trace.sums import groups
from profiles.tensorflow_internals import (
    add_function,
    copy_variable_content,
    create_operation,
    function_in_graph,
    set_traceback,
    variable_content,
)

_NOT_COPIED = frozenset(["_class", "_gradient_op_type"])

_SLICE_OF_ALL = {
    "Index": tf.compat.v1.AttrValue(type=tf.int32.as_datatype_enum),
    "ellipsis_mask": tf.compat.v1.AttrValue(i=1),
} | {
    f"{name}_mask": tf.compat.v1.AttrValue(i=0)
    for name in ("begin", "end", "new_axis", "shrink_axis")
}
"""Of a strided slice, `[...]`."""

OtherAttributes = Callable[[Any], tuple[dict[str, Any], tuple[Any, ...]]]
"""For an operation: attributes that replace its own, and the functions that they name."""


def _none(operation: Any) -> tuple[dict[str, Any], tuple[Any, ...]]:
    return {}, ()


class Emitter:
    """Copies operations of `source` into `target`, which must be the default graph.

    Attributes:
        source: the graph of the traced function.
        target: the graph that is being built.
    """

    def __init__(self, source: Any, target: Any, others: OtherAttributes = _none) -> None:
        self.source = source
        self.target = target
        self._others = others
        self._shared: dict[tuple[str, int], Any] = {}
        self._tracebacks: dict[Any, Any] = {}
        self._zeros_and_ones: dict[str, tuple[Any, Any]] = {}

    def provide(self, tensor: Any, value: Any) -> None:
        """Let `value` stand for `tensor` of the source graph from now on."""
        self._shared[tensor_key(tensor)] = value

    def provided(self, tensor: Any) -> Any:
        """What stands for `tensor`, or None."""
        return self._shared.get(tensor_key(tensor))

    def create(
        self,
        operation: Any,
        inputs: list[Any],
        control_inputs: Iterable[Any] = (),
        name: str | None = None,
        device: str | None = None,
    ) -> Any:
        """Create a copy of `operation` on `inputs`; it runs after `control_inputs`.

        Its name is the last part of the operation's, and its device the same, unless others are
        given.
        """
        others, functions = self._others(operation)
        for function in functions:
            add_function(function, self.target)
        attributes = _attributes(operation) | others
        return self._create(operation, inputs, control_inputs, attributes, name, device)

    def create_sum(
        self, operation: Any, inputs: list[Any], control_inputs: Iterable[Any] = ()
    ) -> Any:
        """As `create`, for an AddN of three and more inputs: pairs, in the order of its kernel.

        Left to the kernel, the order would follow from what else is held (see `sums`). And
        Grappler's memory optimizer takes every larger AddN apart, into a variable that the inputs
        are added to as they come, wherever it reckons that the step takes more than 205 MB: its
        memory would be another than planned. Pairs stay pairs: Grappler makes one AddN of sums of
        sums, but none through an alias.
        """
        first, *others = groups(len(inputs))
        total = self._add_up(operation, [inputs[place] for place in first], control_inputs)
        for group in others:
            part = self._add_up(operation, [inputs[place] for place in group], control_inputs)
            sums = [self.alias(each.outputs[0]) for each in (total, part)]
            total = self._add_up(operation, sums, ())
        return total

    def _add_up(self, operation: Any, inputs: list[Any], control_inputs: Iterable[Any]) -> Any:
        attributes = _attributes(operation)
        attributes["N"] = tf.compat.v1.AttrValue(i=2)
        made = self._create(operation, inputs[:2], control_inputs, attributes)
        for each in inputs[2:]:
            so_far = self.alias(made.outputs[0])
            made = self._create(operation, [so_far, each], (), attributes)
        return made

    def create_write_in_place(
        self, operation: Any, inputs: list[Any], control_inputs: Iterable[Any] = ()
    ) -> Any:
        """As `create`, for an AssignVariableOp that writes the same bits into the old buffer.

        It is `variable[...] = value`. TensorFlow would exchange the buffer for the value's.
        """
        handle, value = inputs
        all_of_it, step = self._zero_and_one(operation.device)
        attributes = _SLICE_OF_ALL | {
            "T": tf.compat.v1.AttrValue(type=value.dtype.base_dtype.as_datatype_enum)
        }
        given = [handle, all_of_it, all_of_it, step, value]
        kind = "ResourceStridedSliceAssign"
        return self.create_in_place_of(operation, kind, given, attributes, control_inputs)

    def create_in_place_of(
        self,
        operation: Any,
        kind: str,
        inputs: list[Any],
        attributes: dict[str, Any],
        control_inputs: Iterable[Any] = (),
    ) -> Any:
        """As `create`, of another kind of operation, which does what `operation` is there for."""
        return self._create(operation, inputs, control_inputs, attributes, kind=kind)

    def _zero_and_one(self, device: str) -> tuple[Any, Any]:
        """The vectors (0) and (1), made once on each device."""
        if device not in self._zeros_and_ones:
            with self.target.control_dependencies(None), tf.device(device or None):
                self._zeros_and_ones[device] = tf.constant([0]), tf.constant([1])
        return self._zeros_and_ones[device]

    def alias(self, tensor: Any) -> Any:
        """`tensor` in the same buffer, made by another operation.

        Grappler removes an Identity, but not what might find a shape wrong.
        """
        with self.target.control_dependencies(None), tf.device(tensor.device or None):
            return tf.raw_ops.EnsureShape(input=tensor, shape=tensor.shape)

    def create_barrier(self, operations: Iterable[Any], device: str) -> Any:
        """Create an operation that does nothing, on `device`, after all `operations`."""
        return create_operation(self.target, "NoOp", [], operations, "NoOp", {}, device)

    def _create(
        self,
        operation: Any,
        inputs: list[Any],
        control_inputs: Iterable[Any],
        attributes: dict[str, Any],
        name: str | None = None,
        device: str | None = None,
        kind: str | None = None,
    ) -> Any:
        # The bodies of While, If and calls are named by attributes and looked up in the graph.
        for function in functions_of(operation):
            add_function(function_in_graph(self.source, function), self.target)
        copy = create_operation(
            self.target,
            kind or operation.type,
            inputs,
            control_inputs,
            name=name or operation.name.rsplit("/", 1)[-1],
            attributes=attributes,
            device=device or operation.device,
        )
        self.copy_traceback(operation, copy)
        return copy

    def copy_traceback(self, original: Any, copy: Any) -> None:
        """Let the errors of `copy` name the lines of the user's code that made `original`.

        TensorFlow records the lines that create an operation; those of a copy are this package's.
        Once read they take 20 KB, as long as the operation is there. Few operations are made at
        lines of their own, so that all that are made at the same ones share them, also originals.
        """
        lines = original.traceback
        if lines is None:
            return
        shared = self._tracebacks.get(lines)  # looked up once: every hash of it is made of its text
        if shared is None:
            shared = lines[:]
            self._tracebacks[shared] = shared
        for operation in (original, copy):
            set_traceback(operation, shared)

    def create_shared(
        self, operation: Any, inputs: list[Any], control_inputs: Iterable[Any] = ()
    ) -> Any:
        """As `create`, of what stands for `operation` from now on."""
        copy = self.create(operation, inputs, control_inputs)
        for original, made in zip(operation.outputs, copy.outputs, strict=True):
            self.provide(original, made)
        return copy

    def emit_anywhere(self, operation: Any) -> Any | None:
        """Copy `operation` onto whatever stands for its inputs, for shape inference alone.

        Returns None for a placeholder that something already stands for.
        """
        if operation.type == "Placeholder":
            if self.provided(operation.outputs[0]) is not None:
                return None
            handle = tf.raw_ops.Placeholder(
                dtype=operation.outputs[0].dtype, shape=operation.outputs[0].shape
            )
            copy_variable_content(operation.outputs[0], handle)
            self.provide(operation.outputs[0], handle)
            return None
        copy = self.create_shared(operation, [self.provided(each) for each in operation.inputs])
        for original, made in zip(operation.outputs, copy.outputs, strict=True):
            keep_what_is_known(original, made)
        return copy


def keep_what_is_known(original: Any, made: Any) -> None:
    """Shapes that were told, by the user or by TensorFlow's Python code, and can't be inferred."""
    if original.dtype in (tf.resource, tf.variant):
        if variable_content(made) is None and variable_content(original) is not None:
            copy_variable_content(original, made)
    elif not made.shape.is_fully_defined() and made.shape.is_compatible_with(original.shape):
        made.set_shape(original.shape)


def _attributes(operation: Any) -> dict[str, Any]:
    return {
        name: value for name, value in operation.node_def.attr.items() if name not in _NOT_COPIED
    }
