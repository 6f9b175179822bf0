"""Where the variables of a step lie: in one block, each in a buffer of its own.

What is free between them decides how much the allocator wastes in a step, and how a trial run
differs from training. Keras makes variables amid other buffers, and those that it makes while it
traces, as optimizers make their slots in `fit`, begin as constants: all zeros of one shape are one
buffer until they are written, between a step's activations. So before a plan is made the values
are taken out of the allocator's memory and laid down again, the largest first.

On a CPU alone: on other devices a variable can't have its value in the host's memory, and only gets
a buffer of its own. And only as long as nobody else writes: what another thread writes between a
value's copy and its assignment would be lost. So nothing is moved once a write was seen, nor after
the first plan of a step, when training is under way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.layout import address_of, fill_gaps
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.planning.variable_watch import VariableWatch
from checkmate_tf.trace.side_effects import written_captures
from profiles.tensorflow_internals import variable_content

_ALIGNMENT = 64
"""Bytes. TensorFlow takes over numpy's memory, and copies nothing, if it begins at a multiple."""

_SMALLEST_GAP, _MOST_GAPS = 4096, 4096
"""Bytes of the smallest gap that is filled, and the number of fillers at most."""

_WATCH: ContextVar[VariableWatch | None] = ContextVar("watch", default=None)


@contextmanager
def variables_movable(concrete: Any | None) -> Iterator[None]:
    """Let values of the variables that it may write be moved, until somebody else writes to one.

    None: training is under way, so that nothing may be moved.
    """
    watch = VariableWatch(quiet=concrete is not None)
    watch.hold(concrete)
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)
        watch.end()


@dataclass(frozen=True)
class _Place:
    """A variable whose value is in the host's memory for a while."""

    handle: Any
    dtype: tf.DType
    bytes: int
    address: int


def pack_variables(concrete: Any) -> None:
    """Lay the values of the variables that `concrete` may write down anew; they keep their bits."""
    if current_device().moves_values:
        with variables_aside(concrete):
            pass
    elif (_WATCH.get() or VariableWatch()).quiet:
        lay_down_anew(concrete)


def lay_down_anew(concrete: Any) -> None:
    """Give every variable that `concrete` may write another buffer of its own, the largest first.

    On any device, and only by kernels that write under the variable's lock.

    Example:
        >>> import tensorflow as tf
        >>> value = tf.ones((1024, 1024))
        >>> variable = tf.Variable(value)
        >>> step = tf.function(lambda: variable.assign_add(value)).get_concrete_function()
        >>> lay_down_anew(step)
        >>> bool(tf.reduce_all(variable == value))
        True
    """
    values: dict[str, tuple[Any, Any]] = {}
    for placeholder, handle in written_captures(concrete):
        content = variable_content(placeholder)
        if content is None or not hasattr(handle, "numpy"):  # or of a graph that is being built
            continue
        if tf.raw_ops.VarIsInitializedOp(resource=handle):
            value = _unless_copied(handle, tf.as_dtype(content.dtype))
            if value is not None and value.shape.rank:
                values[repr(handle)] = handle, value
    for handle, value in sorted(values.values(), key=lambda each: -each[1].shape.num_elements()):
        # Without a kernel for its type, or room for another buffer, it stays where it is.
        with suppress(tf.errors.OpError), tf.device(handle.device):
            _write_nothing(handle, tf.zeros([0, *value.shape[1:]], value.dtype))


def _unless_copied(handle: Any, dtype: tf.DType) -> Any:
    """The variable's value in the variable's own buffer; None where readers get a copy."""
    device = str(handle.device).rpartition("device:")[2]
    before = held_bytes(device)
    value = _value(handle, dtype)
    return value if held_bytes(device) == before else None


@contextmanager
def variables_aside(concrete: Any) -> Iterator[bool]:
    """Keep the values of variables that it may write out of the allocator's memory meanwhile.

    They can be read and written all the time. Yields whether this was possible. Afterwards they lie
    in one block, as far as there is room for one.
    """
    watch = _WATCH.get() or VariableWatch()
    places = _moved_out(concrete, watch)
    if not watch.quiet:
        _move_in(places, watch)
        places = []
    try:
        yield bool(places)
    finally:
        _move_in(places, watch)
        watch.hold(concrete)


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


def _moved_out(concrete: Any, watch: VariableWatch) -> list[_Place]:
    """Where the values are now; the first write of somebody else that is seen ends the moving."""
    places = []
    for handle, value in watch.let_go(concrete):
        outside = outside_tensor(value)
        if not _put(handle, value, outside):
            watch.quiet = False
            break
        places.append(_Place(handle, value.dtype, _array(outside).nbytes, address_of(outside)))
    return places


def _move_in(places: list[_Place], watch: VariableWatch) -> None:
    """Lay the values down in the allocator's memory, the largest first."""
    with gaps_filled(sum(each.bytes for each in places)):
        for place in sorted(places, key=lambda each: -each.bytes):
            value = _value(place.handle, place.dtype)
            # Nobody writes into numpy's memory: what was written lies in the allocator's already.
            if address_of(value) != place.address:
                watch.quiet = False
            elif value.shape.rank:
                _write_nothing(place.handle, np.empty(0, value.dtype.as_numpy_dtype))
            else:  # a scalar has no slices
                _put(place.handle, value, tf.raw_ops.DeepCopy(x=value))


def _put(handle: Any, value: Any, copy: Any) -> bool:
    """Give a variable the copy of its value; whether nobody had written since that was read."""
    is_same = address_of(_value(handle, value.dtype)) == address_of(value)
    if is_same:
        tf.raw_ops.AssignVariableOp(resource=handle, value=copy)
    return is_same


def _write_nothing(handle: Any, nothing: Any) -> None:
    """Let a variable copy its value into a buffer of its own, from numpy's memory or a shared one.

    A kernel does so under the variable's lock before it writes a slice, here an empty one: no write
    of another thread is lost. It also makes the variable copy its value for every reader, which is
    switched off again.
    """
    with tf.device("CPU:0"):
        begin, stride = (outside_tensor(np.array([each], np.int32)) for each in (0, 1))
    try:
        tf.raw_ops.ResourceStridedSliceAssign(
            ref=handle, begin=begin, end=begin, strides=stride, value=nothing
        )
    finally:
        tf.raw_ops.DisableCopyOnRead(resource=handle)


def _value(handle: Any, dtype: tf.DType) -> Any:
    return tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)


def _array(value: Any) -> Any:
    """The buffer of a tensor on the CPU, as an array that is no copy."""
    return np.asarray(value)
