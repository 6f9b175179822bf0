"""From a schedule to the instructions that run it on a device, pass by pass."""

from __future__ import annotations

from checkmate_tf.devices.device import Device, Order
from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.program.buffers import with_buffers
from checkmate_tf.program.compiled_order import tied
from checkmate_tf.program.instructions import Instructions
from checkmate_tf.program.order import as_ready, in_turn
from checkmate_tf.program.reads import with_reads
from checkmate_tf.program.side_by_side import side_by_side
from solvers import Schedule

_ORDERS = {Order.AS_FREED: in_turn, Order.AS_READY: as_ready, Order.COMPILED: tied}


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
    ordered = _ORDERS[device.order](extraction, schedule, device)
    read = with_reads(extraction.program, ordered, extraction.tiny)
    if device.order is Order.AS_FREED:
        return side_by_side(extraction.program, with_buffers(extraction, read))
    has_its_own = to_emit or device.order is Order.COMPILED
    return read if has_its_own else with_buffers(extraction, read)
