"""Where the variables of a step lie: in one block, each in a buffer of its own.

What is free between them decides how much the allocator wastes in a step, and how a trial run
differs from training. Keras makes variables amid other buffers, and those that it makes while it
traces, as optimizers make their slots in `fit`, begin as constants: all zeros of one shape are one
buffer until they are written, between a step's activations. So before a plan is made the values
are taken out of the allocator's memory and laid down again, the largest first.

On a CPU alone: on other devices a variable can't have its value in the host's memory. And before
the first plan of a step alone: later, another thread may train while this one plans, and what it
writes between a value's copy and its assignment would be lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from checkmate_tf.memory.layout import address_of, fill_gaps, values_in_place
from checkmate_tf.trace.side_effects import written_captures
from profiles.devices import default_device

_ALIGNMENT = 64
"""Bytes. TensorFlow takes over numpy's memory, and copies nothing, if it begins at a multiple."""

_SMALLEST_GAP, _MOST_GAPS = 4096, 4096
"""Bytes of the smallest gap that is filled, and the number of fillers at most."""

_MOVABLE: ContextVar[bool] = ContextVar("movable", default=True)


@contextmanager
def variables_movable(movable: bool) -> Iterator[None]:
    """Say whether nobody writes to the variables meanwhile, so that their values may be moved."""
    token = _MOVABLE.set(movable)
    try:
        yield
    finally:
        _MOVABLE.reset(token)


@dataclass(frozen=True)
class _Place:
    """A variable whose value is in the host's memory for a while."""

    handle: Any
    dtype: tf.DType
    bytes: int
    address: int


def pack_variables(concrete: Any) -> None:
    """Lay the values of the variables that `concrete` may write down anew; they keep their bits."""
    with variables_aside(concrete):
        pass


@contextmanager
def variables_aside(concrete: Any) -> Iterator[bool]:
    """Keep the values of variables that it may write out of the allocator's memory meanwhile.

    They can be read and written all the time. Yields whether this was possible. Afterwards they lie
    in one block, as far as there is room for one.
    """
    possible = _MOVABLE.get() and default_device().startswith("CPU")
    places = list(_moved_out(concrete)) if possible else []
    try:
        yield bool(places)
    finally:
        with gaps_filled(sum(each.bytes for each in places)):
            for place in sorted(places, key=lambda each: -each.bytes):
                value = _value(place.handle, place.dtype)
                # What another thread has written meanwhile lies in the allocator's memory already.
                if address_of(value) == place.address:
                    copy = tf.raw_ops.DeepCopy(x=value)
                    tf.raw_ops.AssignVariableOp(resource=place.handle, value=copy)


@contextmanager
def gaps_filled(size: int) -> Iterator[None]:
    """Fill the gaps in the allocator's memory meanwhile; a block of `size` bytes stays free.

    The allocator gives out the smallest piece that is large enough, and the whole piece if it is
    less than twice as large. So a variable in a gap may hold more than its own bytes.
    """
    fillers = list(fill_gaps(size, _SMALLEST_GAP, _MOST_GAPS))
    yield
    del fillers


def outside_tensor(tensor: Any) -> Any:
    """A tensor of equal bits on the CPU, in memory that its allocator doesn't count.

    Example:
        >>> import tensorflow as tf
        >>> float(outside_tensor(tf.constant(2.5)))
        2.5
    """
    array = _array(tensor)
    memory = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % _ALIGNMENT
    aligned = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    aligned[...] = array
    return tf.raw_ops.Identity(input=aligned)


def _moved_out(concrete: Any) -> Iterator[_Place]:
    for handle, value in values_in_place(list(written_captures(concrete))):
        outside = outside_tensor(value)
        tf.raw_ops.AssignVariableOp(resource=handle, value=outside)
        yield _Place(handle, value.dtype, _array(outside).nbytes, address_of(outside))


def _value(handle: Any, dtype: tf.DType) -> Any:
    return tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)


def _array(value: Any) -> Any:
    """The buffer of a tensor on the CPU, as an array that is no copy."""
    return np.asarray(value)
