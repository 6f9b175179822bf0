"""The gradient of max pooling that is written for XLA has the bits of XLA's own."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.program.max_pool_gradient import gradient, windows_of
from checkmate_tf.program.rewrite import rewrite
from profiles.measure.compilation import compiled_memory
from profiles.operation import Operation, TensorSize
from solvers import Schedule

POOLS = [
    ((2, 2), (2, 2), "VALID", (8, 6), "float32"),
    ((2, 2), (2, 2), "VALID", (9, 7), "float32"),  # the last row and column are in no window
    ((2, 2), (2, 2), "SAME", (8, 6), "bfloat16"),
    ((3, 3), (2, 2), "VALID", (9, 11), "float32"),  # windows overlap
    ((2, 3), (3, 2), "VALID", (10, 11), "float64"),
]


def numbers(kind, shape):
    draw = np.random.default_rng(0)
    if kind == "any":
        return draw.normal(size=shape)
    if kind == "equal":
        return draw.integers(0, 3, shape).astype(float)
    if kind == "zeros":
        return np.where(draw.random(shape) < 0.5, 0.0, -0.0)
    values = draw.normal(size=shape)
    for special in (np.nan, np.inf, -np.inf):
        values[draw.random(shape) < 0.2] = special
    return values


def operation(attributes, dtype, read, made):
    inputs = tuple(TensorSize(dtype, tuple(each)) for each in (read, made, made))
    return Operation("MaxPoolGrad", inputs, inputs[:1], tuple(attributes.items()))


def of_xla(x, y, dy, **attributes):
    function = tf.function(
        lambda x, y, dy: tf.raw_ops.MaxPoolGrad(orig_input=x, orig_output=y, grad=dy, **attributes),
        jit_compile=True,
    )
    return function(x, y, dy)


@pytest.mark.parametrize(("size", "strides", "padding", "sides", "dtype"), POOLS)
@pytest.mark.parametrize("kind", ["any", "equal", "zeros", "special"])
def test_the_bits_of_xla(size, strides, padding, sides, dtype, kind):
    attributes = {"ksize": [1, *size, 1], "strides": [1, *strides, 1], "padding": padding}
    x = tf.constant(numbers(kind, (4, *sides, 3)), dtype)
    wide = tf.cast(x, tf.float64)
    y = tf.cast(tf.nn.max_pool2d(wide, size, strides, padding), dtype)
    dy = tf.constant(np.where(numbers("any", y.shape) < -1, -0.0, numbers("any", y.shape)), dtype)
    windows = windows_of(operation(attributes | {"data_format": "NHWC"}, dtype, x.shape, y.shape))
    assert windows is not None
    ours = tf.function(lambda x, dy: gradient(x, dy, windows), jit_compile=True)(x, dy)
    theirs = of_xla(x, y, dy, **attributes)
    assert ours.numpy().tobytes() == theirs.numpy().tobytes()
    assert np.any(ours.numpy() != 0)


@pytest.mark.parametrize(
    ("change", "dtype", "made"),
    [
        ({"padding": "SAME", "ksize": [1, 3, 3, 1]}, "float32", (4, 4, 4, 3)),
        ({"data_format": "NCHW"}, "float32", (4, 4, 4, 3)),
        ({"padding": "EXPLICIT"}, "float32", (4, 4, 4, 3)),
        ({"ksize": [1, 3, 3, 1]}, "bfloat16", (4, 3, 3, 3)),  # sums would be rounded otherwise
        ({}, "float32", (-1, -1, -1, 3)),
        ({"ksize": [1, 5, 5, 1]}, "float32", (4, 2, 2, 3)),  # too many places
    ],
)
def test_others_are_left_to_xla(change, dtype, made):
    attributes = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    attributes |= {"data_format": "NHWC"} | change
    assert windows_of(operation(attributes, dtype, (4, 8, 8, 3), made)) is None


def test_a_rewritten_step_has_it_and_needs_less():
    """XLA's own takes four arrays of integers of the size of `x`."""
    weights = tf.Variable(tf.random.stateless_normal((3, 3, 8, 8), (1, 2)))

    @tf.function(jit_compile=True)
    def step(x):
        with tf.GradientTape() as tape:
            pooled = tf.nn.max_pool2d(tf.nn.conv2d(x, weights, 1, "SAME"), 2, 2, "VALID")
            loss = tf.reduce_sum(pooled**2)
        return tape.gradient(loss, weights)

    x = tf.random.stateless_normal((4, 64, 64, 8), (3, 4))
    concrete = step.get_concrete_function(x)
    schedule = Schedule(range(len(extract_step(concrete).graph)))
    again = tf.function(rewrite(concrete, schedule), jit_compile=True)
    assert again(x).numpy().tobytes() == step(x).numpy().tobytes()
    size = [tf.TensorSpec(x.shape)]
    plain, ours = (
        compiled_memory(each.get_concrete_function(x), size).temporary for each in (step, again)
    )
    assert ours <= plain - 2 * 4 * 64 * 64 * 8 * 4
