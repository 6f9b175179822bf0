"""The functions that an operation runs: the bodies of loops, branches and calls."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from profiles.operation_facts import types
from profiles.tensorflow_internals import (
    body_of_function,
    function_in_graph,
    operation_definition,
)

LOOPS = types(lambda each: each.runs == "loop")
CALLS = types(lambda each: each.runs == "call")
BRANCHES = types(lambda each: each.runs == "branch")
RUN_FUNCTIONS = LOOPS | CALLS | BRANCHES

_COMPILED = "_XlaMustCompile"


@dataclass(frozen=True)
class Body:
    """A function that an operation runs, with the shapes of what it is given.

    It looks like a ConcreteFunction without captures.

    Attributes:
        name: of the function.
        graph: its operations.
        inputs: a placeholder for each operand.
        outputs: what it returns.
    """

    name: str
    graph: Any
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    captured_inputs: tuple[Any, ...] = ()

    @property
    def is_sized(self) -> bool:
        """Whether the shapes of all that it is given are known."""
        return all(each.shape.is_fully_defined() for each in self.inputs)


def operands(operation: Any) -> list[Any]:
    """What `operation` gives to the functions that it runs."""
    inputs = list(operation.inputs)
    return inputs[1:] if operation.type in BRANCHES else inputs  # the first chooses one


def bodies(operation: Any) -> tuple[Body, ...]:
    """The functions that `operation`, whose shapes are known, may run; none for most.

    Of a loop it is the body alone: what the condition holds is a few numbers.
    """
    if operation.type in LOOPS:
        return (_body(operation, operation.get_attr("body").name),)
    return tuple(_body(operation, name) for name in functions_of(operation))


def condition(loop: Any) -> Body:
    """The function that says whether the body of `loop`, whose shapes are known, runs again."""
    return _body(loop, loop.get_attr("cond").name)


def functions_of(operation: Any) -> list[str]:
    """Names of all functions that `operation` may run, the condition of a loop among them."""
    return functions_of_node(operation.node_def) if _may_run(operation.type) else []


def functions_of_node(node: Any) -> list[str]:
    """As `functions_of`, of a NodeDef."""
    if not _may_run(node.op):
        return []
    attributes = node.attr.values()
    functions = [each.func for each in attributes if each.HasField("func")]
    functions += [function for each in attributes for function in each.list.func]
    return [function.name for function in functions if function.name]


@functools.cache
def _may_run(kind: str) -> bool:
    """Whether operations of this type name functions."""
    definition = operation_definition(kind)
    return definition is None or any("func" in each.type for each in definition.attr)


def is_compiled(call: Any) -> bool:
    """Whether XLA compiles the function that `call` runs."""
    compiled = call.node_def.attr.get(_COMPILED)
    return compiled is not None and bool(compiled.b)


def _body(operation: Any, name: str) -> Body:
    function = function_in_graph(operation.graph, name)
    graph = getattr(function, "graph", None)
    if graph is None or not all(each.shape.is_fully_defined() for each in graph.inputs):
        shapes = [each.shape for each in operands(operation)]
        with operation.graph.as_default():  # where the functions are that the body itself runs
            sized = body_of_function(function, shapes, _elements(operands(operation)))
        is_body = operation.type in LOOPS and len(sized.outputs) == len(sized.inputs)
        if graph is None or not is_body or _keeps_its_shapes(sized):
            graph = sized
    return Body(name, graph, tuple(graph.inputs), tuple(graph.outputs))


def _elements(given: list[Any]) -> dict[int, list[int]]:
    """By place, the shape of the elements of lists that are the parts of a tensor."""
    parts = {
        place: each.op.inputs[0].shape[1:]
        for place, each in enumerate(given)
        if each.op.type == "TensorListFromTensor"
    }
    return {place: shape.as_list() for place, shape in parts.items() if shape.is_fully_defined()}


def _keeps_its_shapes(body: Any) -> bool:
    """Whether a loop's iterations get tensors of the shapes that the first one gets."""
    pairs = zip(body.inputs, body.outputs, strict=True)
    return all(given.shape.is_compatible_with(returned.shape) for given, returned in pairs)
