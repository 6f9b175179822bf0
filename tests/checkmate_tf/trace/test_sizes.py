"""Sizes that no argument tells: of what an iterator gives, and of what was told in Python."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from checkmate_tf import rematerialize
from solvers import CheckmateError
from tests.dense_steps import QUICK, SIZE, loss_and_gradient, some_weights
from tests.messages import codes, raises

BATCH = 512


def drawing(kernel):
    whole = loss_and_gradient(kernel)

    def step(iterator):
        loss, gradient = whole(next(iterator))
        kernel.assign_sub(1e-5 * gradient)
        return loss

    return step


def batches():
    """The last one is smaller, so that no batch has a known size."""
    x = tf.random.stateless_normal((2 * BATCH + 9, SIZE), (1, 2))
    return iter(tf.data.Dataset.from_tensor_slices(x).batch(BATCH))


def test_the_batch_size_says_what_an_iterator_gives(recwarn):
    ours, plain = some_weights(), some_weights()
    step = rematerialize(drawing(ours), batch_size=BATCH, **QUICK)
    plain_step = tf.function(drawing(plain))
    iterator, same = batches(), batches()
    for _ in range(3):
        np.testing.assert_allclose(step(iterator), plain_step(same), rtol=1e-3)
    np.testing.assert_allclose(ours, plain, rtol=1e-4, atol=1e-5)
    assert len(step.plan.schedule) > len(step.plan.graph)
    assert "memory-depends-on-data" not in codes(recwarn)


def test_without_it_the_error_asks_for_it():
    with raises(CheckmateError, "shape-unknown", "(None, 64)", "batch_size="):
        rematerialize(drawing(some_weights()), **QUICK)(batches())


def test_a_shape_that_was_told_is_known_for_any_batch(recwarn):
    """By `set_shape`, which no operation remembers."""
    kernel = some_weights()

    @tf.function(input_signature=[tf.TensorSpec((None, SIZE))])
    def step(x):
        mixing = tf.numpy_function(lambda: np.eye(SIZE, dtype="float32"), [], tf.float32)
        mixing.set_shape((SIZE, SIZE))
        return loss_and_gradient(kernel)(x @ mixing)

    rematerialize(step, batch_size=BATCH, **QUICK)(tf.ones((BATCH, SIZE)))
    assert "memory-depends-on-data" not in codes(recwarn)
