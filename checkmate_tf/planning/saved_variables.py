"""The variables that a step writes, saved in the host's memory and put back to the bit."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from checkmate_tf.devices.cpu import host_has_room
from checkmate_tf.planning.apart import apart
from checkmate_tf.planning.trial.variable_copies import can_copy, resource_name, written_bytes
from checkmate_tf.trace.side_effects import (
    changes_only_variables,
    draws_by_seed,
    written_captures,
)
from profiles.tensorflow_internals import variable_content


@dataclass(frozen=True)
class SavedVariables:
    """Handles of variables, and the values that these had."""

    values: tuple[tuple[Any, np.ndarray[Any, Any]], ...]

    def put_back(self, given_away: bool = False) -> None:
        """Give the variables these values again; those that still have them are left alone.

        Args:
            given_away: the step was compiled by XLA, which takes over the buffers of variables that
                it writes, and has freed them where it failed. The variables still refer to them:
                nobody may read what lies there now, and who frees it again ends the process.
        """
        with apart():
            for handle, value in self.values:
                dtype = tf.as_dtype(value.dtype)
                now = tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)
                if given_away:
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(now))  # so that it is never freed
                elif _same_bits(np.asarray(now.numpy()), value):
                    continue
                del now
                tf.raw_ops.AssignVariableOp(resource=handle, value=_own_tensor(value))


def can_be_saved(concrete: Any) -> bool:
    """Whether a step that is run again after its variables were put back does the same.

    A kernel that draws by a seed would draw other numbers.
    """
    return changes_only_variables(concrete) and not draws_by_seed(concrete)


def saved_variables(concrete: Any) -> SavedVariables | None:
    """Save the variables that `concrete` may write, of one that `can_be_saved`.

    None where they have no values yet, or what can't be copied, and where the host lacks the room.

    Example:
        >>> variable = tf.Variable(1.0)
        >>> step = tf.function(lambda: variable.assign_add(1.0)).get_concrete_function()
        >>> saved = saved_variables(step)
        >>> step().numpy(), saved.put_back(), variable.numpy()
        (np.float32(2.0), None, np.float32(1.0))
    """
    with apart():
        if not can_copy(concrete) or not host_has_room(written_bytes(concrete)):
            return None
        written = {resource_name(handle): (p, handle) for p, handle in written_captures(concrete)}
        return SavedVariables(tuple((each[1], _value(*each)) for each in written.values()))


def _value(placeholder: Any, handle: Any) -> np.ndarray[Any, Any]:
    dtype = tf.as_dtype(variable_content(placeholder).dtype)  # type: ignore[union-attr]
    # A copy, for it is `numpy`, and not `np.asarray`, that is called.
    return np.asarray(tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype).numpy())


def _own_tensor(value: np.ndarray[Any, Any]) -> Any:
    """A tensor in memory of the allocator's, where that has room; else in numpy's."""
    with tf.device("CPU:0"):
        outside = tf.constant(value)
        try:
            return tf.raw_ops.DeepCopy(x=outside)
        except tf.errors.OpError:  # no room, or no kernel for this type
            return outside


def _same_bits(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    if one.shape != other.shape or one.dtype.hasobject:
        return bool(np.array_equal(one, other))
    bytes_of_one, bytes_of_other = (each.reshape(-1).view(np.uint8) for each in (one, other))
    return bool(np.array_equal(bytes_of_one, bytes_of_other))
