"""Steps that do the same have one content, and no others."""

from __future__ import annotations

import keras
import tensorflow as tf
from keras import layers

from checkmate_tf.planning.kept.step_content import step_content
from checkmate_tf.trace.program import resolve
from tests.steps import random_batch, small_cnn


def content(function, *specs):
    return step_content(resolve(tf.function(function).get_concrete_function(*specs)))


def test_an_equal_model_has_an_equal_content():
    """Its variables, names and functions are others."""
    batch, smaller = random_batch(8, side=8), random_batch(7, side=8)
    model = small_cnn(dropout=0.1, side=8)
    first = content(model.train_step, batch)
    assert content(small_cnn(dropout=0.1, side=8).train_step, batch) == first
    assert content(model.train_step, smaller) != first


def convolution(strides=1, padding="same", activation="relu"):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((8, 8, 3)), layers.Conv2D(4, 3, strides, padding, activation=activation)]
    )
    return content(model, tf.TensorSpec((2, 8, 8, 3)))


def test_attributes_count():
    """A kernel's strides, where sizes are the same."""
    kernel = tf.ones((1, 1, 3, 4))

    def by(dilations):
        return content(lambda x: tf.nn.conv2d(x, kernel, 1, "SAME", dilations=dilations), SPEC)

    assert by(1) == by(1)
    assert by(1) != by(2)
    assert convolution() == convolution()
    assert convolution(activation="tanh") != convolution()


SPEC = tf.TensorSpec((2, 8, 8, 3))


def test_who_reads_what_counts():
    def chain(x):
        y = tf.exp(x)
        return tf.exp(y) + y

    def other(x):
        y = tf.exp(x)
        z = tf.exp(y)
        return z + z

    assert content(chain, SPEC) == content(chain, SPEC)
    assert content(chain, SPEC) != content(other, SPEC)


def test_functions_inside_are_judged_by_what_they_do():
    def looping(times, scale):
        def step(x):
            return tf.while_loop(
                lambda i, y: i < times, lambda i, y: (i + 1, tf.tanh(y * scale)), (0, x)
            )[1]

        return step

    assert content(looping(3, 2.0), SPEC) == content(looping(3, 2.0), SPEC)
    assert content(looping(3, 2.0), SPEC) != content(lambda x: tf.tanh(x), SPEC)
