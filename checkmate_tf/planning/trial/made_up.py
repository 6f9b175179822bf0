"""Made-up inputs of a step, for a trial run."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from checkmate_tf.planning.variable_places import outside_tensor
from checkmate_tf.trace.inputs import argument_placeholders
from checkmate_tf.trace.program import Program


def made_up_arguments(program: Program, outside: bool) -> list[Any]:
    """Valid inputs; with `outside`, not in the allocator's memory."""
    generator = np.random.default_rng(0)
    placeholders = argument_placeholders(program.concrete)
    sized = [program.sized[each.op.name].outputs[0] for each in placeholders]
    made = [_made_up(each.shape, each.dtype, generator) for each in sized]
    if outside:
        return [each if each.dtype == tf.string else outside_tensor(each) for each in made]
    return made


def _made_up(shape: tf.TensorShape, dtype: tf.DType, generator: np.random.Generator) -> Any:
    """A valid input: zero is valid as a label, as an index and as a truth value."""
    if dtype == tf.string:
        return tf.fill(shape, "")
    if not dtype.is_floating:
        return tf.zeros(shape, dtype)
    values = tf.cast(generator.random(shape.as_list(), np.float32), dtype)
    # A constant may lie in numpy's memory, where no allocator counts it.
    return tf.raw_ops.DeepCopy(x=values)
