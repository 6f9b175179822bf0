"""What TensorFlow makes constants of takes memory for ever, so it is fixed, and shared."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.program.rewrite import as_function
from checkmate_tf.trace.constants import folded_constants
from checkmate_tf.trace.sizes import tensor_bytes
from solvers import Schedule

SIDE = 512


def masked_layers(x):
    """Each layer makes the same causal mask, and the same zeros, for itself."""
    for _ in range(4):
        mask = tf.linalg.band_part(tf.ones((SIDE, SIDE)), -1, 0)
        scores = tf.where(mask > 0, tf.tanh(x @ x), tf.zeros((SIDE, SIDE)))
        x = scores / tf.reduce_sum(mask)
    return tf.reduce_sum(x)


def traced(function, *specs):
    return tf.function(function).get_concrete_function(*specs)


def constants_of(concrete):
    return folded_constants(
        concrete.graph.get_operations(), lambda each: tensor_bytes(each.dtype, each.shape) or 0
    )


def test_equal_constants_are_one():
    concrete = traced(masked_layers, tf.TensorSpec((SIDE, SIDE)))
    constants = constants_of(concrete)
    types = {name: concrete.graph.get_operation_by_name(name).type for name in constants}
    for kind in ("MatrixBandPart", "Greater", "Fill"):
        equal = {constants[name] for name, each in types.items() if each == kind}
        assert sum(each == kind for each in types.values()) >= 4
        assert len(equal) == (2 if kind == "Fill" else 1)
    assert not {"MatMul", "Tanh", "SelectV2", "RealDiv"} & set(types.values())


def small_sum(x):
    return x + tf.reduce_sum(tf.ones((4, 4)))


def random_numbers(x):
    return x + tf.random.normal((4,))


def large_from_small(x):
    return x + tf.reduce_sum(tf.tile(tf.constant([1.0, 2.0]), [50_000]))


def large_of_one_number(x):
    ones = tf.tile(tf.constant([1.0]), [50_000])
    return x + tf.reduce_sum(2.0 * tf.reshape(ones, (100, 500)))


def of_unknown_size(x):
    return x + tf.ones(tf.shape(x))


@pytest.mark.parametrize(
    ("function", "folded"),
    [(small_sum, {"Sum"}), (random_numbers, set()), (large_from_small, set()),
     (large_of_one_number, {"Tile", "Reshape", "Mul", "Sum"}), (of_unknown_size, set())],
)  # fmt: skip
def test_only_what_grappler_folds(function, folded):
    concrete = traced(function, tf.TensorSpec((None,)))
    types = {concrete.graph.get_operation_by_name(name).type for name in constants_of(concrete)}
    assert types == folded


def gradient_of_a_sum(x):
    """It begins with as many ones as were added."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(tf.tanh(x))
    return tape.gradient(loss, x)


@pytest.mark.parametrize(
    ("function", "bytes_each"),
    [(masked_layers, 1 + 4), (gradient_of_a_sum, 4)],  # a mask of truth values and the zeros; ones
)
def test_the_device_holds_what_is_counted(function, bytes_each):
    concrete = traced(function, tf.TensorSpec((SIDE, SIDE)))
    extracted = extract_step(concrete)
    x = tf.random.stateless_uniform((SIDE, SIDE), (1, 2))
    # What they are made of is gone.
    counted = extracted.program.fixed_bytes - x.shape.num_elements() * 4
    assert counted == pytest.approx(SIDE * SIDE * bytes_each, rel=0.01)
    expected = concrete(x)
    schedule = Schedule(range(len(extracted.graph)))
    as_function(extracted, schedule)(x)  # whatever only the first step brings along
    gc.collect()  # or what others left is freed in between
    before = held_bytes()
    step = as_function(extracted, schedule)
    np.testing.assert_allclose(step(x)[0], expected, rtol=1e-6)
    if before is not None:
        # The allocator rounds up, to twice the size at most. Small constants may be left out.
        assert 0.99 * counted <= held_bytes() - before <= 2 * counted
