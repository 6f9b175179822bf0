"""What planning takes for itself is not held afterwards, and is not counted as resident."""

from __future__ import annotations

import gc

import pytest
import tensorflow as tf

from checkmate_tf.memory.measure import held_bytes
from checkmate_tf.planning.planner import Planner
from checkmate_tf.planning.request import parse_request

if held_bytes() is None:
    pytest.skip("the allocator keeps no count", allow_module_level=True)

SIZE = 1999  # of no network whose kernels a stored profile knows


@pytest.fixture
def no_collection():
    """Nothing is collected by chance."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_kernels_that_were_measured_are_let_go(no_collection):
    weights = [tf.Variable(tf.random.normal((SIZE, SIZE), stddev=0.02)) for _ in range(3)]

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = x
            for each in weights:
                y = tf.nn.softmax(tf.tanh(y @ each))
            loss = tf.reduce_sum(tf.math.square(y))
        for each, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            each.assign_sub(0.1 * gradient)
        return loss

    concrete = step.get_concrete_function(tf.TensorSpec((SIZE, SIZE)))
    held = held_bytes()
    request = parse_request("2GiB", "auto", None, "roofline", 1, "free", trial_run=False)
    planned = Planner(request).plan(concrete, None)
    assert planned is not None
    assert held_bytes() - held < SIZE * SIZE  # a quarter of a variable
