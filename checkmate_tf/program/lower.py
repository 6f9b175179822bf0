"""From a schedule to the instructions that run it on a device, pass by pass."""

from __future__ import annotations

from checkmate_tf.devices.device import Device, Order
from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.program.buffers import with_buffers
from checkmate_tf.program.compiled_order import tied
from checkmate_tf.program.in_place import InPlace, in_place
from checkmate_tf.program.instructions import Instructions
from checkmate_tf.program.order import as_ready, in_turn
from checkmate_tf.program.reads import with_reads
from checkmate_tf.program.side_by_side import side_by_side
from solvers import Schedule
from solvers.graph import input_order_peak

SHORT = 0.5
"""Share of a GPU's memory: where the plain step takes more of it, variables stay in their places.
Slots that move lie amid the activations of the next step, and of large pieces few fit: of a
ResNet50 whose largest buffers take a tenth of the limit plans at 0.7 of it ran out of memory."""


def lower(
    extraction: Extraction, schedule: Schedule, device: Device, to_emit: bool = False
) -> Instructions:
    """The instructions that run `schedule`, in the order in which `device` runs them.

    Args:
        extraction: of the traced step, or of a part of it.
        schedule: node numbers of its graph.
        device: that computes.
        to_emit: leave out which buffers they allocate and free; TensorFlow decides that by itself.

    Example:
        >>> import tensorflow as tf
        >>> from checkmate_tf.devices.current import current_device
        >>> from checkmate_tf.graph.extraction import extract_step
        >>> step = tf.function(lambda x: tf.reduce_sum(tf.sin(x @ x)))
        >>> extraction = extract_step(step.get_concrete_function(tf.TensorSpec((64, 64))))
        >>> schedule = Schedule(range(len(extraction.graph)))
        >>> operations = extraction.program.operations
        >>> lowered = lower(extraction, schedule, current_device())
        >>> [operations[each.operation].type for each in lowered if each.operation is not None]
        ['MatMul', 'Sin', 'Sum']
    """
    program, changes = extraction.program, _in_place(extraction, device)
    if device.order is Order.COMPILED:
        return with_reads(program, tied(extraction, schedule, device), extraction.tiny)
    in_order = in_turn if device.order is Order.AS_FREED else as_ready
    read = with_reads(program, in_order(extraction, schedule, changes), extraction.tiny)
    if device.order is Order.AS_FREED:
        return side_by_side(program, with_buffers(extraction, read, changes), changes)
    return read if to_emit else with_buffers(extraction, read, changes)


def _in_place(extraction: Extraction, device: Device) -> InPlace:
    """What the device does in the variables' own buffers.

    On a GPU the copies that this takes are made only where memory is short.
    """
    if device.order is Order.AS_FREED:
        return in_place(extraction.program)
    wall = device.wall() if device.order is Order.AS_READY else None
    if wall is None or input_order_peak(extraction.graph) <= SHORT * wall:
        return InPlace()
    return in_place(extraction.program, by_kernels=False)
