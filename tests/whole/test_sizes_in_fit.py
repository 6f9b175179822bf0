"""`fit` and `train_on_batch` with images of one size after another: a plan for each."""

from __future__ import annotations

import json
import warnings
from typing import ClassVar

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import checkmate_tf
from profiles.devices import default_device
from tests.costs import sweep
from tests.dense_steps import QUICK, same, variables
from tests.messages import warns
from tests.processes import printed

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


@pytest.mark.parametrize("executions", sweep([1, 2]))
def test_sizes_that_the_data_set_leaves_open(executions):
    """The first batches say them; a larger one that comes amid an epoch is planned for, too."""
    data = tf.data.Dataset.from_generator(
        lambda: iter([images(side, 8) for side in (12, 16, 12, 12, 20, 12)]),
        output_signature=(tf.TensorSpec((8, None, None, 3)), tf.TensorSpec((8, 1))),
    )
    with warns("larger-sizes-came", [8, 20, 20, 3]) as said:
        step = trained_alike(lambda: network(steps_per_execution=executions), data, epochs=2)
    assert len(said) == 1
    small, large = (
        trained_alike(network, tf.data.Dataset.from_tensors(images(side, 8))) for side in (16, 20)
    )
    assert largest_value(small) < largest_value(step) == largest_value(large)


TEXTS = """
import hashlib, json, warnings
import keras, numpy as np, tensorflow as tf
import checkmate_tf
warnings.simplefilter("ignore")
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
given = json.loads(input())
keras.utils.set_random_seed(1)
words = keras.Input((None,), dtype="int32")
x = keras.layers.Embedding(500, 64)(words)
for _ in range(6):
    x = keras.layers.Dense(64, "tanh")(keras.layers.Dense(256, "tanh")(x))
x = keras.layers.Dense(4)(keras.layers.GlobalAveragePooling1D()(x))
model = keras.Model(words, x)
model.compile(keras.optimizers.Adam(0.01, epsilon=0.01), "mse", jit_compile=False)
if given["ours"]:
    checkmate_tf.rematerialize(model, time_limit=3, verbose=0)
draw = np.random.default_rng(0)
texts = [(draw.integers(0, 500, length).astype("int32"), draw.normal(size=4).astype("float32"))
         for length in [64] * 256 + [256] * 64 + [64] * 64]
data = tf.data.Dataset.from_generator(
    lambda: iter(texts), output_signature=(tf.TensorSpec([None], tf.int32), tf.TensorSpec([4])))
try:
    model.fit(data.padded_batch(64), epochs=2, verbose=0)
    plan = model.train_step.plan if given["ours"] else None
    values = [each.numpy().tobytes() for each in model.trainable_variables]
    recomputes = bool(plan and len(plan.schedule) > len(plan.graph))
    found = [hashlib.sha256(b"".join(values)).hexdigest(), recomputes]
except tf.errors.ResourceExhaustedError as error:
    found = [type(error).__name__, False]
print(json.dumps(found))
"""
"""Texts of 64 words; in the middle of the epoch some of 256 come, of which a step takes 150 MiB."""


@pytest.mark.slow
@pytest.mark.skipif(default_device().startswith("GPU"), reason="a limit of the CPU's allocator")
def test_a_longer_text_amid_an_epoch_is_planned_for_before_it_exhausts_the_memory():
    def ran(ours, limit):
        settings = {"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(limit)}
        return json.loads(printed(TEXTS, json.dumps({"ours": ours}), **settings))

    bits, _ = ran(False, 400)
    assert ran(False, 110) == ["ResourceExhaustedError", False]
    assert ran(True, 110) == [bits, True]


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
