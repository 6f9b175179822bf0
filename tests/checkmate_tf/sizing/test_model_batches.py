"""The batch that a model is trained with, told by the model: `fit` takes such data."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf import CheckmateError
from checkmate_tf.sizing.model_batches import batch_of_model
from tests.messages import raises


def _two_inputs(as_dict):
    a, b = keras.Input((4,), name="a"), keras.Input((3,), name="b", dtype="int32")
    joined = keras.layers.Concatenate()([a, keras.ops.cast(b, "float32")])
    return keras.Model({"a": a, "b": b} if as_dict else [a, b], _heads(joined))


def _heads(x):
    return [keras.layers.Dense(5, name="classes")(x), keras.layers.Dense(2, name="values")(x)]


LOSSES = {"classes": "sparse_categorical_crossentropy", "values": keras.losses.MeanSquaredError()}


@pytest.mark.parametrize("as_dict", [False, True])
@pytest.mark.parametrize("losses", [LOSSES, [*LOSSES.values()], "mse"])
def test_fit_takes_such_data(as_dict, losses):
    model = _two_inputs(as_dict)
    model.compile("sgd", losses)
    specs = batch_of_model(model)
    data = tf.nest.map_structure(
        lambda each: np.zeros([6, *each.shape[1:]], each.dtype.name), specs
    )
    if isinstance(data[1], list):
        data = data[0], tuple(data[1])
    history = model.fit(*data, batch_size=3, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    shapes = [each.shape.as_list() for each in tf.nest.flatten(specs[1])]
    assert shapes == [[None, 5] if losses == "mse" else [None], [None, 2]]


def test_a_model_that_was_written_as_a_class():
    class Own(keras.Model):
        def call(self, x):
            return x

    model = Own()
    model.compile("sgd", "mse")
    with raises(CheckmateError, "argument-missing"):
        batch_of_model(model)
