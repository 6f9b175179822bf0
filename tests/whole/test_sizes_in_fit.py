"""`fit` and `train_on_batch` with images of one size after another: a plan for each."""

from __future__ import annotations

from typing import ClassVar

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import checkmate_tf
from solvers import CheckmateError
from tests.dense_steps import QUICK, same, variables

OPTIONS = {**QUICK, "budget": "1GiB"}
SIDES = (12, 20, 12, 16, 20)


class Counted(keras.Model):
    """Notes the sizes that its step is traced for."""

    traced: ClassVar[list[int]] = []

    def train_step(self, data):
        self.traced.append(data[0].shape[1])
        return super().train_step(data)


def network(kind=keras.Model, **options):
    keras.utils.set_random_seed(1)
    images = keras.Input((None, None, 3))
    x = layers.Conv2D(8, 3, activation="relu")(images)
    x = layers.BatchNormalization()(x)
    x = layers.Dropout(0.2, seed=1)(layers.Conv2D(8, 3, activation="swish")(x))
    model = kind(images, layers.Dense(1)(layers.GlobalAveragePooling2D()(x)))
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse", jit_compile=False, **options)
    return model


def images(side, count=12):
    draw = np.random.default_rng(side)
    return draw.normal(size=(count, side, side, 3)).astype("float32"), np.ones((count, 1))


def by_fit(model):
    for side in SIDES:
        model.fit(*images(side), batch_size=8, shuffle=False, verbose=0)


def by_batches(model):
    for side in SIDES:
        model.train_on_batch(*images(side, 8))


def compiled_again(model):
    by_fit(model)
    model.layers[1].trainable = False
    model.compile("sgd", "mse", jit_compile=False)
    by_fit(model)


@pytest.mark.parametrize("decorated_twice", [False, True])
@pytest.mark.parametrize("train", [by_fit, by_batches, compiled_again])
def test_images_of_another_size(train, decorated_twice):
    """TensorFlow would trace Keras' functions for any size, of which there is no plan."""
    model, plain = network(), network()
    if decorated_twice:  # as where the train_step of a class calls that of its base
        model.train_step = checkmate_tf.rematerialize(model.train_step, batch_size=8, **OPTIONS)
        inner = model.train_step
        model.train_step = lambda data: inner(data)
    checkmate_tf.rematerialize(model, batch_size=8, **OPTIONS)
    train(model)
    train(plain)
    same(variables(model), variables(plain))


def test_sizes_that_come_again_are_not_traced_again():
    model = network(Counted, steps_per_execution=2)
    checkmate_tf.rematerialize(model, batch_size=4, **OPTIONS)
    for side in SIDES:
        model.fit(*images(side, 8), batch_size=4, shuffle=False, verbose=0)
    known = list(Counted.traced)
    assert set(known) == set(SIDES)
    for side in SIDES:
        model.fit(*images(side, 8), batch_size=4, shuffle=False, verbose=0)
    assert Counted.traced == known


def test_sizes_that_the_data_set_leaves_open():
    model = checkmate_tf.rematerialize(network(), batch_size=8, **OPTIONS)
    batches = tf.data.Dataset.from_generator(
        lambda: iter([images(side, 8) for side in SIDES]),
        output_signature=(tf.TensorSpec((8, None, None, 3)), tf.TensorSpec((8, 1))),
    )
    with pytest.raises(CheckmateError, match="give the data set's elements a fixed shape"):
        model.fit(batches, verbose=0)
