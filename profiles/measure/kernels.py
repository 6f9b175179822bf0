"""From an operation's signature to a function that runs its kernel, a number of times."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import tensorflow as tf

from profiles.fusion import Fusion
from profiles.measure.random_inputs import NotMeasurableError, random_inputs
from profiles.nested import Nested
from profiles.operation import Operation
from profiles.operation_facts import facts
from profiles.tensorflow_internals import grappler_with, operation_definition, register_function


class Kernel:
    """An operation on made-up inputs, ready to run on a device.

    Raises:
        NotMeasurableError: it is stateful, calls functions, or its inputs depend on data or don't
            fit into the device's memory.
    """

    def __init__(self, operation: Operation, device: str, equal: bool = False) -> None:
        """The numbers that it works on are random, or all `equal` where they don't matter."""
        parts = operation.parts if isinstance(operation, Fusion) else (operation,)
        for part in parts:
            _check(part)
        self._operation = operation
        self._device = device
        with self._accepted(), tf.device(device):  # there may be no memory for them
            self._inputs = random_inputs(operation, equal)

    def once(self) -> Callable[[], Any]:
        """A call that runs the kernel once, without a graph around it where it needs none.

        Making a graph takes longer than most kernels.

        Raises:
            NotMeasurableError: as for `function`.
        """
        operation, device = self._operation, self._device
        if isinstance(operation, Fusion | Nested):
            return self.function(1)

        def run() -> Any:
            with self._accepted(), tf.device(device):
                return tf.nest.flatten(_run(operation, _values(operation, self._inputs)))

        return run

    def function(self, repeats: int) -> Callable[[], Any]:
        """A call that runs the kernel `repeats` times, one after the other, in one graph.

        Its first run takes longer than the others.

        Raises:
            NotMeasurableError: TensorFlow does not accept such inputs; the call may raise it, too.
        """
        # The traced body must not hold on to the inputs: they may be large, and graphs live long.
        operation, device, numbers = self._operation, self._device, tuple(self._inputs)

        def body(*given: Any) -> Any:
            values = dict(zip(numbers, given, strict=True))
            before: list[Any] = []
            outputs: list[Any] = []
            with tf.device(device):
                for _ in range(repeats):
                    with tf.control_dependencies(before):
                        outputs, operations = _once(operation, _set_apart(operation, values))
                    # Fused parts wait together, or oneDNN would fuse across the edge between them.
                    before = operations if len(operations) == 1 else [_after(operations)]
            return outputs

        arguments = list(self._inputs.values())
        with self._accepted():
            concrete = tf.function(body, autograph=False).get_concrete_function(*arguments)

        def run() -> Any:
            with self._accepted():
                return concrete(*arguments)

        return run

    @contextmanager
    def _accepted(self) -> Iterator[None]:
        try:
            yield
        except (tf.errors.OpError, TypeError, ValueError) as error:
            raise NotMeasurableError(
                f"{self._operation.type} does not run by itself: {error}"
            ) from error


def function_of_specs(operation: Operation) -> tuple[Callable[..., Any], list[tf.TensorSpec]]:
    """What creates the operation on tensors of these types and shapes, in the default graph.

    Raises:
        NotMeasurableError: it is stateful, calls functions, or its inputs depend on data.
    """
    _check(operation)
    known = dict(operation.constants)
    numbers = [number for number in range(len(operation.inputs)) if number not in known]
    sizes = [operation.inputs[number] for number in numbers]
    if any(length < 0 for size in sizes for length in size.shape):
        raise NotMeasurableError(f"{operation.type} reads what depends on data")

    def body(*given: Any) -> Any:
        return _once(operation, dict(zip(numbers, given, strict=True)))[0]

    return body, [tf.TensorSpec(size.shape, size.dtype) for size in sizes]


def repeats_kept() -> AbstractContextManager[None]:
    """While this lasts, Grappler leaves the repeats of a kernel alone.

    It would find that nobody reads what they compute, and copy a GPU's tensors to the host where
    it thinks that there are too many.
    """
    return grappler_with(
        arithmetic_optimization="OFF",
        dependency_optimization="OFF",
        memory_optimization="NO_MEM_OPT",
    )


def _check(operation: Operation) -> None:
    if isinstance(operation, Nested) and operation.is_compiled:
        return
    definition = operation_definition(operation.type)
    writes = facts(operation.type).variable in ("overwrites", "adds")
    if (
        definition is None
        or not hasattr(tf.raw_ops, operation.type)
        or (definition.is_stateful and not writes)
    ):
        raise NotMeasurableError(f"{operation.type} can't run by itself")
    if any(attribute.type == "func" for attribute in definition.attr):
        raise NotMeasurableError(f"{operation.type} calls a function")


def _set_apart(operation: Operation, given: dict[int, Any]) -> dict[int, Any]:
    """The inputs, with a name of their own for those that several parts of a fusion read.

    oneDNN finds such parts by the input that they share. Where all repeats share it, the parts
    of different repeats would be fused, each of which waits for the other.
    """
    if not isinstance(operation, Fusion):
        return given
    read = Counter(number for wire in operation.wires for number in set(wire))
    return {
        number: tf.identity(value) if read[number] > 1 else value for number, value in given.items()
    }


def _once(operation: Operation, given: dict[int, Any]) -> tuple[list[Any], list[Any]]:
    """Outputs and operations of one run, in the default graph."""
    values = _values(operation, given)
    if isinstance(operation, Nested):
        return _imported(operation, values)
    if not isinstance(operation, Fusion):
        made = _create(operation, values)
        return list(made.outputs), [made]
    operations = []
    for part, wire in zip(operation.parts, operation.wires, strict=True):
        operations.append(_create(part, [values[number] for number in wire]))
        values += operations[-1].outputs
    return [values[number] for number in operation.results], operations


def _values(operation: Operation, given: dict[int, Any]) -> list[Any]:
    """All inputs: those that are `given`, and those that are known."""
    known = dict(operation.constants)
    return [
        given[number] if number in given else tf.constant(known[number], dtype=size.dtype)
        for number, size in enumerate(operation.inputs)
    ]


def _imported(call: Nested, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Outputs and operations of a call of a compiled function, in the default graph."""
    graph = tf.compat.v1.GraphDef.FromString(call.definition)
    for definition in graph.library.function:
        register_function(definition)
    graph.ClearField("library")
    # Identities, for a graph can be given only what is in the graph around it.
    given = {f"input_{number}:0": tf.identity(_handle(each)) for number, each in enumerate(inputs)}
    (made,) = tf.graph_util.import_graph_def(graph, given, return_elements=["call"], name="")
    return list(made.outputs), [made]


def _handle(value: Any) -> Any:
    return value.handle if isinstance(value, tf.Variable) else value


def _after(operations: Sequence[Any]) -> Any:
    with tf.control_dependencies(operations):
        return tf.no_op()


def _create(operation: Operation, inputs: Sequence[Any]) -> Any:
    """The operation, created in the default graph."""
    made = _run(operation, inputs)
    if isinstance(made, tf.Operation):
        return made
    return tf.nest.flatten(made)[0].op


def _run(operation: Operation, inputs: Sequence[Any]) -> Any:
    """What TensorFlow's function of this kind returns; in a graph, it creates the operation."""
    definition = operation_definition(operation.type)
    function = getattr(tf.raw_ops, operation.type)
    values = list(map(_handle, inputs))
    parameters = _parameters(definition, function)
    arguments: dict[str, Any] = {}
    inferred: set[str] = set()
    for argument in definition.input_arg:
        inferred |= {argument.type_attr, argument.number_attr, argument.type_list_attr}
        count = _list_length(operation, argument)
        if count is None:
            arguments[parameters[argument.name]] = values.pop(0)
        else:
            arguments[parameters[argument.name]], values = values[:count], values[count:]
    for attribute in definition.attr:
        value = operation.attribute(attribute.name)
        if attribute.name not in inferred and value is not None:
            arguments[attribute.name] = list(value) if isinstance(value, tuple) else value
    return function(**arguments)


def _parameters(definition: Any, function: Any) -> dict[str, str]:
    """What Python calls every input: "reduction_indices" is "axis" there, for one."""
    inputs = [each.name for each in definition.input_arg]
    taken = {*inputs, *(each.name for each in definition.attr), "name"}
    parameters = list(inspect.signature(function).parameters)
    new_names = iter([each for each in parameters if each not in taken])
    return {each: each if each in parameters else next(new_names) for each in inputs}


def _list_length(operation: Operation, argument: Any) -> int | None:
    """How many tensors a list argument takes; None for a single tensor."""
    if argument.number_attr:
        return int(operation.attribute(argument.number_attr))
    if argument.type_list_attr:
        return len(operation.attribute(argument.type_list_attr))
    return None
