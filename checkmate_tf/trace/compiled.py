"""Calls of functions that XLA compiles, each as a graph of its own that can run by itself."""

from __future__ import annotations

import hashlib
from typing import Any

import tensorflow as tf

from checkmate_tf.trace.bodies import functions_of, functions_of_node
from profiles.tensorflow_internals import function_definition, function_in_graph

_KEPT = "_XlaMustCompile", "_read_only_resource_inputs"
"""Attributes of TensorFlow's own that a call must keep."""

_OF_ONE_TRACE = "forward_function_name", "backward_function_name"
"""Attributes of a function that name other functions of the same trace."""


def definition_of(call: Any) -> bytes:
    """A serialized GraphDef: the operation "call" on placeholders, and the functions it runs.

    Functions of equal content get equal names, so that equal layers have equal definitions.
    """
    definition = tf.compat.v1.GraphDef()
    renamed: dict[str, str] = {}
    for name in functions_of(call):
        _add(call.graph, name, definition.library, renamed)
    for number, tensor in enumerate(call.inputs):
        placeholder = definition.node.add(name=f"input_{number}", op="Placeholder")
        placeholder.attr["dtype"].type = tensor.dtype.as_datatype_enum
    node = definition.node.add(name="call", op=call.type)
    node.input.extend(f"input_{number}" for number in range(len(call.inputs)))
    for name, value in sorted(call.node_def.attr.items()):
        if not name.startswith("_") or name in _KEPT:
            node.attr[name].CopyFrom(value)
    _rename(node, renamed)
    content: bytes = definition.SerializeToString(deterministic=True)
    return content


def _add(graph: Any, name: str, library: Any, renamed: dict[str, str]) -> None:
    """Add a function to `library`, after those that it runs itself, named by what it does."""
    if name in renamed:
        return
    original = function_definition(function_in_graph(graph, name))
    definition = type(original)()
    definition.CopyFrom(original)
    definition.arg_attr.clear()
    for attribute in _OF_ONE_TRACE:
        definition.attr.pop(attribute, None)
    for node in definition.node_def:
        node.ClearField("experimental_debug_info")
        node.attr.pop("_class", None)
        for inner in functions_of_node(node):
            _add(graph, inner, library, renamed)
        _rename(node, renamed)
    _number(definition)
    definition.signature.name = ""
    content = definition.SerializeToString(deterministic=True)
    definition.signature.name = renamed[name] = f"compiled_{hashlib.sha256(content).hexdigest()}"
    if definition.signature.name not in {each.signature.name for each in library.function}:
        library.function.append(definition)


def _number(definition: Any) -> None:
    """Name all in a function by numbers; names tell of the layer around it."""
    signature = definition.signature
    number: dict[str, str] = {}
    for place, each in enumerate((*signature.input_arg, *definition.node_def)):
        each.name = number.setdefault(each.name, f"value_{place}")

    def renamed(tensor: str) -> str:  # "argument", "node:output:0" or "^node"
        is_control = tensor.startswith("^")
        name, *output = tensor.removeprefix("^").split(":")
        return ":".join([f"{'^' * is_control}{number[name]}", *output])

    for node in definition.node_def:
        inputs = list(map(renamed, node.input))
        data = [each for each in inputs if not each.startswith("^")]
        node.input[:] = data + sorted(each for each in inputs if each.startswith("^"))
    returned = [renamed(definition.ret[each.name]) for each in signature.output_arg]
    waited_for = [number[definition.control_ret[each]] for each in signature.control_output]
    definition.ret.clear()
    definition.control_ret.clear()
    for place, (each, tensor) in enumerate(zip(signature.output_arg, returned, strict=True)):
        each.name = f"output_{place}"
        definition.ret[each.name] = tensor
    signature.control_output[:] = [f"control_{place}" for place in range(len(waited_for))]
    for name, node in zip(signature.control_output, waited_for, strict=True):
        definition.control_ret[name] = node


def _rename(node: Any, renamed: dict[str, str]) -> None:
    for value in node.attr.values():
        # To write into a field that is not set would be to set it.
        if value.HasField("func"):
            value.func.name = renamed.get(value.func.name, value.func.name)
        for function in value.list.func if value.HasField("list") else ():
            function.name = renamed.get(function.name, function.name)
