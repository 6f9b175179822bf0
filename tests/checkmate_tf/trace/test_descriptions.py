"""Batch and optimizer of a traced step, as its user would name them."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf

from checkmate_tf.trace.descriptions import batch_of, optimizer_of
from checkmate_tf.trace.program import resolve


@pytest.mark.parametrize("options", [{}, {"gradient_accumulation_steps": 2}])
@pytest.mark.parametrize("kind", ["SGD", "Adam", "RMSprop"])
def test_of_a_model_with_other_updates_beside(kind, options):
    layers = [keras.Input((8,)), *(keras.layers.BatchNormalization() for _ in range(4))]
    model = keras.Sequential([*layers, keras.layers.Dense(2)])
    model.compile(getattr(keras.optimizers, kind)(0.1, **options), "mse", jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    data = tf.TensorSpec((None, 8)), tf.TensorSpec((None, 2))
    program = resolve(tf.function(model.train_step).get_concrete_function(data), 12)
    assert batch_of(program) == 12
    assert optimizer_of(program).replace("_", "") == kind.lower()


def test_of_a_function_without_either():
    w, norm = tf.Variable(tf.ones((4, 4))), keras.layers.BatchNormalization()

    @tf.function
    def step(rate):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(norm(tf.tanh(w @ w), training=True))
        w.assign_sub(rate * tape.gradient(loss, w))

    program = resolve(step.get_concrete_function(tf.TensorSpec(())), None)
    assert batch_of(program) is None
    assert optimizer_of(program) == ""
