"""`fit` and `train_on_batch` with images of one size after another: a plan for each."""

from __future__ import annotations

import warnings
from typing import ClassVar

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import checkmate_tf
from tests.costs import sweep
from tests.dense_steps import QUICK, same, variables
from tests.messages import warns

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
    return draw.normal(size=(count, side, side, 3)).astype("float32"), np.ones(
        (count, 1), "float32"
    )


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


@pytest.mark.parametrize(
    ("train", "decorated_twice"),
    sweep(
        [
            (by_batches, True),
            (by_fit, False),
            (by_fit, True),
            (by_batches, False),
            (compiled_again, False),
            (compiled_again, True),
        ]
    ),
)
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


@pytest.mark.slow
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


def trained_alike(make, data, **options):
    """The plan's step, after the variables were compared with those of plain training."""
    model, plain = make(), make()
    checkmate_tf.rematerialize(model, **OPTIONS)
    for each in (model, plain):
        each.fit(data, shuffle=False, verbose=0, **options)
    same(variables(model), variables(plain))
    return model.train_step


def largest_value(step):
    """Bytes of the largest one that the step computes, as it is planned."""
    return max(node.memory for node in step.plan.graph.nodes)


@pytest.mark.parametrize("executions", sweep([2, 1]))
def test_a_batch_size_that_only_the_data_set_knows(executions):
    """Its last batch is smaller, so that the types of its batches leave the size open."""
    data = tf.data.Dataset.from_tensor_slices(images(12, 20)).batch(8)
    step = trained_alike(lambda: network(steps_per_execution=executions), data)
    whole = tf.data.Dataset.from_tensor_slices(images(12, 16)).batch(8, drop_remainder=True)
    known = trained_alike(network, whole)
    assert largest_value(step) == largest_value(known)


@pytest.mark.slow
def test_the_smaller_batch_of_a_shuffled_data_set_may_come_first():
    small, large = images(12, 4), images(12, 8)
    data = tf.data.Dataset.from_generator(
        lambda: iter([small, large, large]),
        output_signature=(tf.TensorSpec((None, 12, 12, 3)), tf.TensorSpec((None, 1))),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        step = trained_alike(network, data, epochs=2, steps_per_epoch=1)
    known = trained_alike(network, tf.data.Dataset.from_tensors(large))
    assert largest_value(step) == largest_value(known)


class Decorated(keras.Model):
    @checkmate_tf.rematerialize(**OPTIONS)
    def train_step(self, data):
        return super().train_step(data)


@pytest.mark.slow
def test_a_batch_size_that_a_step_decorated_in_its_class_is_not_told():
    model, plain = network(Decorated), network()
    data = tf.data.Dataset.from_tensor_slices(images(12, 20)).batch(8)
    for each in (model, plain):
        each.fit(data, shuffle=False, verbose=0)
    assert model.train_step.plan is not None
    same(variables(model), variables(plain))


@pytest.mark.slow
def test_sizes_that_the_data_set_leaves_open():
    """The first batches say them; a larger one that comes later is planned for, too."""
    data = tf.data.Dataset.from_generator(
        lambda: iter([images(side, 8) for side in (12, 12, 20, 20)]),
        output_signature=(tf.TensorSpec((8, None, None, 3)), tf.TensorSpec((8, 1))),
    )
    with warns("larger-sizes-came"):
        step = trained_alike(network, data, epochs=2, steps_per_epoch=2)
    small, large = (
        trained_alike(network, tf.data.Dataset.from_tensors(images(side, 8))) for side in SIDES[:2]
    )
    assert largest_value(small) < largest_value(step) == largest_value(large)


def test_series_of_a_data_set_of_keras():
    """The types of its elements leave the length of the series open."""
    steps = np.random.default_rng(0).normal(size=(60, 5, 1)).astype("float32")
    series = keras.utils.timeseries_dataset_from_array(steps, None, 12, batch_size=8, shuffle=False)
    targets = keras.utils.timeseries_dataset_from_array(
        steps[9:, :, 0], None, 3, batch_size=8, shuffle=False
    )
    data = tf.data.Dataset.zip(series, targets)
    assert data.element_spec[0].shape.as_list() == [None, None, 5, 1]

    def forecaster():
        keras.utils.set_random_seed(1)
        inputs = keras.Input((12, 5, 1))
        x = layers.Dense(8, activation="tanh")(layers.Reshape((12, 5))(inputs))
        x = layers.Dense(15)(layers.Dense(8, activation="tanh")(layers.Flatten()(x)))
        model = keras.Model(inputs, layers.Reshape((3, 5))(x))
        model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse", jit_compile=False)
        return model

    assert trained_alike(forecaster, data).plan is not None


class TwoBatches(keras.Model):
    """Trains on many images without labels, and on a few with labels."""

    def train_step(self, data):
        many, (few, labels) = data
        with tf.GradientTape() as tape:
            spread = tf.reduce_mean(tf.square(self(many, training=True)))
            loss = spread + tf.reduce_mean(tf.square(self(few, training=True) - labels))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


@pytest.mark.slow
def test_two_batch_sizes_in_one_step():
    many = tf.data.Dataset.from_tensor_slices(images(12, 48)[0]).batch(16)
    few = tf.data.Dataset.from_tensor_slices(images(12, 12)).batch(4)
    step = trained_alike(lambda: network(TwoBatches), tf.data.Dataset.zip(many, few))
    known = trained_alike(
        lambda: network(TwoBatches),
        tf.data.Dataset.from_tensors((images(12, 16)[0], images(12, 4))),
    )
    assert largest_value(step) == largest_value(known)
