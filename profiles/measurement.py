"""Run one operation on a device, and see how long it takes and what it needs beside its output.

The operation runs eagerly on random inputs of valid range, as a kernel of its own.
"""

from __future__ import annotations

import inspect
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from profiles.operation import Operation, TensorSize
from solvers.errors import CheckmateError


@dataclass(frozen=True)
class Measurement:
    """What one operation needs on one device.

    Attributes:
        seconds: median of the repeats after a warm-up, launch included.
        workspace: most bytes held beyond inputs and outputs; None where the device's allocator
            keeps no count.
    """

    seconds: float
    workspace: int | None


class NotMeasurableError(ValueError):
    """The operation can't run by itself on made-up inputs."""


def measure(operation: Operation, device: str = "CPU:0", repeats: int = 5) -> Measurement:
    """Measure `operation` on `device`.

    Raises:
        NotMeasurableError: it is stateful, works on handles or calls functions, or its inputs
            depend on data.
        CheckmateError: TensorFlow does not see such a device; it would compute on another one.

    Example:
        >>> image = TensorSize("float32", (1, 8, 8, 4))
        >>> measure(Operation("Relu", (image,), (image,), (("T", "float32"),))).seconds > 0
        True
    """
    _check_device(device)
    run = _prepare(operation, device)
    try:
        outputs = run()
    except (tf.errors.OpError, TypeError, ValueError) as error:
        raise NotMeasurableError(f"{operation.type} does not run by itself: {error}") from error
    output_bytes = sum(_rounded(each.bytes) for each in operation.outputs)
    del outputs
    seconds: list[float] = []
    workspaces: list[int] = []
    for _ in range(repeats):
        before = _reset(device)
        start = time.perf_counter()
        outputs = run()
        if "GPU" in device:
            tf.test.experimental.sync_devices()
        seconds.append(time.perf_counter() - start)
        if before is not None:
            peak = tf.config.experimental.get_memory_info(device)["peak"]
            workspaces.append(max(0, peak - before - output_bytes))
        del outputs
    # A buffer that something else frees late looks like workspace; it does not every time.
    workspace = min(workspaces) if workspaces else None
    return Measurement(statistics.median(seconds), workspace)


def _check_device(device: str) -> None:
    there = [each.name.removeprefix("/device:") for each in tf.config.list_logical_devices()]
    if device not in there:
        raise CheckmateError(f"there is no device {device!r}; TensorFlow sees {', '.join(there)}")


def _rounded(size: int) -> int:
    """The least that an allocator takes for `size` bytes."""
    return -(-size // 64) * 64


def _reset(device: str) -> int | None:
    """Forget the peak; the bytes held now, or None where the allocator keeps no count."""
    try:
        tf.config.experimental.reset_memory_stats(device)
        return int(tf.config.experimental.get_memory_info(device)["current"])
    except ValueError:
        return None


def _prepare(operation: Operation, device: str) -> Callable[[], Any]:
    """The operation on random inputs, ready to run."""
    definition = op_def_registry.get(operation.type)
    function = getattr(tf.raw_ops, operation.type, None)
    if definition is None or function is None or definition.is_stateful:
        raise NotMeasurableError(f"{operation.type} can't run by itself")
    if any(attribute.type == "func" for attribute in definition.attr):
        raise NotMeasurableError(f"{operation.type} calls a function")
    constants = dict(operation.constants)
    with tf.device(device):
        values = [
            tf.constant(constants[number], dtype=size.dtype)
            if number in constants
            else _random(size, operation.type)
            for number, size in enumerate(operation.inputs)
        ]
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
        if attribute.name in inferred:
            continue
        value = operation.attribute(attribute.name)
        if value is not None:
            arguments[attribute.name] = list(value) if isinstance(value, tuple) else value

    def run() -> Any:
        with tf.device(device):
            return function(**arguments)

    return run


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


def _random(size: TensorSize, kind: str) -> Any:
    dtype = tf.as_dtype(size.dtype)
    if any(length < 0 for length in size.shape) or dtype in (tf.resource, tf.variant, tf.string):
        raise NotMeasurableError(f"{kind} reads {size.dtype} of shape {size.shape}")
    if dtype.is_floating:
        return tf.random.uniform(size.shape, 0.1, 1.0, dtype=dtype)
    # Zero is valid as an index, as a label and as a truth value.
    return tf.zeros(size.shape, dtype)
