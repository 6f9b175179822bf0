"""Gives variables that share a buffer one each, before a plan is made.

Variables that a function makes while it is traced, as Keras' optimizers make their slots in `fit`,
begin as constants of TensorFlow's: all zeros of one shape are one buffer, until they are written.
Left so, their memory would be taken in the middle of the first step, between its activations, and
the step would hold more ever after than in its trial run.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import tensorflow as tf

from checkmate_tf.trace.program import Program
from checkmate_tf.trace.side_effects import written_captures
from profiles.devices import default_device
from profiles.tensorflow_internals import variable_content


def separate_variables(program: Program) -> None:
    """Give each variable that the step may write a buffer of its own; values keep their bits.

    On a CPU: other devices copy a value for each variable.
    """
    if not default_device().startswith("CPU"):
        return
    sharing: dict[int, list[Any]] = defaultdict(list)
    seen = []  # held until the end, so that no address comes twice
    for placeholder, handle in written_captures(program.concrete):
        value = _value(placeholder, handle)
        if value is not None:
            seen.append(np.asarray(value))  # its buffer, not a copy
            sharing[seen[-1].ctypes.data].append((handle, value))
    # A variable that another thread has written meanwhile shares its buffer with none.
    for variables in sharing.values():
        for handle, value in variables if len(variables) > 1 else ():
            tf.raw_ops.AssignVariableOp(resource=handle, value=tf.raw_ops.DeepCopy(x=value))


def _value(placeholder: Any, handle: Any) -> Any | None:
    """The value of a plain variable of numbers that has one."""
    content = variable_content(placeholder)
    if content is None or not hasattr(handle, "numpy"):  # or of a graph that is being built
        return None
    dtype = tf.as_dtype(content.dtype)
    if dtype in (tf.string, tf.variant, tf.resource):
        return None
    if not tf.raw_ops.VarIsInitializedOp(resource=handle):
        return None
    return tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)
