"""Large constants of truth values, as causal masks are: computed once, and captured.

Grappler would compute them, too, but it writes a constant of truth values number by number, in
several passes: for a GPT of 12 blocks, a batch of 16 and 512 words, whose mask takes 48 MiB, half a
minute for every function that has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import tensorflow as tf

from checkmate_tf.devices.device import Device
from checkmate_tf.trace.depth_first import finish
from checkmate_tf.trace.emission import Emitter
from checkmate_tf.trace.operations import under_views
from checkmate_tf.trace.program import Program
from checkmate_tf.trace.sizes import tensor_bytes
from profiles.tensorflow_internals import captured_tensors

LARGE = 1 << 20
"""A mask of at least so many bytes is captured."""


def computed_masks(program: Program, device: Device) -> Iterator[tuple[Any, Any]]:
    """Tensors of `program` and, on `device`, their values, which take the constants' memory.

    They are computed by the host's kernels, as Grappler does.

    Args:
        program: the traced step.
        device: where the step runs.
    """
    wanted = [tensor for tensor in _read_constants(program) if _is_large(program, tensor)]
    if not wanted:
        return
    with tf.Graph().as_default() as graph:
        emitter = Emitter(program.concrete.graph, graph)
        made: dict[str, Any] = {}

        def make(operation: Any) -> None:
            inputs = [emitter.provided(each) for each in operation.inputs]
            made[operation.name] = emitter.create_shared(operation, inputs)

        for tensor in wanted:
            finish(
                tensor.op, made, attrgetter("name"), lambda each: [n.op for n in each.inputs], make
            )
        with tf.compat.v1.Session(graph=graph, config=_as_they_are()) as session:
            values = session.run([emitter.provided(tensor) for tensor in wanted])
    for tensor, value in zip(wanted, values, strict=True):
        with tf.init_scope():
            yield tensor, device.constant(value)


def mask_bytes(function: Any, program: Program) -> int:
    """Bytes of the constants that `function`, which runs `program`, has captured."""
    given = {id(each) for each in captured_tensors(program.concrete)}
    own = [each for each in captured_tensors(function) if id(each) not in given]
    masks = [each for each in own if isinstance(each, tf.Tensor) and each.dtype == tf.bool]
    return sum(tensor_bytes(each.dtype, each.shape) or 0 for each in masks)


def _read_constants(program: Program) -> list[Any]:
    """The constants that operations read, of equal ones the first."""
    graph, found = program.concrete.graph, dict[tuple[str, int], Any]()
    for operation in program.operations:
        for tensor in map(under_views, operation.inputs):
            if tensor.op.name in program.constants:
                first = program.constants[tensor.op.name]
                equal = graph.get_operation_by_name(first).outputs[tensor.value_index]
                found[first, tensor.value_index] = equal
    return list(found.values())


def _is_large(program: Program, tensor: Any) -> bool:
    shape = program.sized[tensor.op.name].outputs[tensor.value_index].shape
    return tensor.dtype == tf.bool and (shape.num_elements() or 0) >= LARGE


def _as_they_are() -> Any:
    """Options of a session on the host in which Grappler folds nothing."""
    config = tf.compat.v1.ConfigProto(device_count={"GPU": 0}, allow_soft_placement=True)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return config
