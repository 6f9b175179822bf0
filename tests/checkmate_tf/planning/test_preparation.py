"""What is said before a step is planned: of memory that data decide, where a plan may change it."""

from __future__ import annotations

import warnings

import keras
import pytest
import tensorflow as tf

from checkmate_tf.devices.current import current_device
from checkmate_tf.planning.preparation import prepared
from checkmate_tf.planning.request import parse_request
from checkmate_tf.trace.program import resolve
from tests.messages import codes

WORDS, WIDTH, LENGTH = 50, 8, 6


def said_of(concrete):
    """Notes of a step, and codes of warnings."""
    request = parse_request(0.5, "auto", None, "roofline", 1.0, "free", True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, notes = prepared(resolve(concrete, None), request, current_device())
    return notes, codes(caught)


@pytest.mark.parametrize("options", [{}, {"gradient_accumulation_steps": 2}])
def test_an_optimizers_update_of_the_rows_that_were_looked_up_is_a_note(options):
    layers = [keras.layers.Embedding(WORDS, WIDTH), keras.layers.Flatten(), keras.layers.Dense(2)]
    model = keras.Sequential([keras.Input((LENGTH,), dtype="int32"), *layers])
    model.compile(keras.optimizers.RMSprop(**options), "mse", jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    data = tf.TensorSpec((4, LENGTH), tf.int32), tf.TensorSpec((4, 2))
    notes, warned = said_of(tf.function(model.train_step).get_concrete_function(data))
    assert any("depends on data" in each for each in notes)
    assert "memory-depends-on-data" not in warned


def test_activations_whose_number_data_decide_are_warned_of():
    weights = tf.Variable(tf.ones((WIDTH, WIDTH)))

    @tf.function(
        input_signature=[tf.TensorSpec((LENGTH, WIDTH)), tf.TensorSpec((LENGTH,), tf.bool)]
    )
    def step(x, chosen):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.tanh(tf.boolean_mask(x, chosen) @ weights))
        weights.assign_sub(tape.gradient(loss, weights))

    notes, warned = said_of(step.get_concrete_function())
    assert any("depends on data" in each for each in notes)
    assert warned == ["memory-depends-on-data"]
