"""Steps live as long as what they belong to, copies plan for themselves, threads share a step."""

from __future__ import annotations

import copy
import gc
import threading
import weakref
from collections import Counter

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import checkmate_tf
from checkmate_tf.devices.measure import held_bytes
from tests.costs import sweep
from tests.dense_steps import (
    BATCH,
    QUICK,
    SIZE,
    dense_model,
    fit,
    loss_and_gradient,
    numbers,
    some_weights,
)


@pytest.fixture
def weights():
    return some_weights()


class Owner(keras.Model):
    """The decorator where users put it."""

    def __init__(self):
        super().__init__()
        self.hidden = [layers.Dense(SIZE, activation="tanh") for _ in range(6)]
        self.last = layers.Dense(1)

    def call(self, x):
        for layer in self.hidden:
            x = layer(x)
        return self.last(x)

    @checkmate_tf.rematerialize(batch_size=BATCH, **QUICK)
    def train_step(self, data):
        return super().train_step(data)


def method_of_a_class():
    model = Owner()
    model.compile("sgd", "mse", jit_compile=False)
    return model


def method_of_a_model():
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    model.train_step = checkmate_tf.rematerialize(model.train_step, batch_size=BATCH, **QUICK)
    return model


def trained(make, in_fit):
    """Weak references to a model that has been trained, and to a variable of it."""
    model = make()
    if in_fit:
        fit(model)
    else:
        x, y = map(tf.constant, numbers())
        model(x)
        model.optimizer.build(model.trainable_variables)
        model.train_step((x, y))
    assert model.train_step.plan is not None
    return [weakref.ref(model), weakref.ref(model.weights[0].value)]


@pytest.mark.parametrize(
    ("make", "in_fit"),
    sweep(
        [
            (method_of_a_model, True),
            (method_of_a_class, False),
            (method_of_a_class, True),
            (method_of_a_model, False),
        ]
    ),
)
def test_no_model_outlives_its_last_reference(make, in_fit):
    alive = [each for _ in range(3) for each in trained(make, in_fit)]
    keras.utils.clear_session()
    gc.collect()
    assert [each for each in alive if each() is not None] == []


def left_of(make):
    """How many objects of each kind a model leaves behind that was trained and dropped."""
    keras.utils.clear_session()
    gc.collect()
    before = Counter(map(type, gc.get_objects()))
    make()
    keras.utils.clear_session()
    gc.collect()
    return Counter(map(type, gc.get_objects())) - before


def test_a_model_leaves_no_more_graphs_behind_than_a_plain_one():
    """TensorFlow keeps the graph of every step with a gradient of the user's own, as Keras has."""

    def plain():
        model = dense_model()
        model.compile("sgd", "mse", jit_compile=False)
        fit(model)

    def ours():
        trained(method_of_a_model, in_fit=True)

    plain(), ours()  # what is made once for all
    graph = type(tf.function(lambda: 1).get_concrete_function().graph)
    in_plain, in_ours = left_of(plain), left_of(ours)
    assert in_ours[graph] <= in_plain[graph]
    assert in_ours[tf.Operation] <= in_plain[tf.Operation]
    assert [kind for kind in in_ours if kind.__module__.startswith("checkmate_tf")] == []


def test_a_copy_of_a_model_trains_itself():
    class Plain:
        def __init__(self):
            self.weights = tf.Variable(tf.ones((SIZE, SIZE)))

        @checkmate_tf.rematerialize(**QUICK)
        def step(self, x):
            self.weights.assign_add(tf.ones_like(self.weights))
            return tf.reduce_sum(tf.exp(x) * tf.exp(-x))

    x = tf.ones((512, SIZE))
    one = Plain()
    one.step(x)
    for other in (copy.copy(one), copy.deepcopy(one)):
        other.weights = tf.Variable(tf.zeros((SIZE, SIZE)))
        before = one.weights.numpy().copy()
        other.step(x)
        assert np.array_equal(one.weights, before)
        assert np.array_equal(other.weights, np.ones((SIZE, SIZE)))


def test_two_threads_call_one_step(weights):
    plain = loss_and_gradient(weights)
    inputs = [number * tf.ones((256, SIZE)) / 10 for number in range(1, 9)]
    expected = [tf.function(plain)(x)[1].numpy() for x in inputs]
    step = checkmate_tf.rematerialize(plain, **QUICK)
    found = [None] * len(inputs)
    plans = set()

    def work(first):
        for number in range(first, len(inputs), 2):
            found[number] = step(inputs[number])[1].numpy()
            plans.add(id(step.plan))

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 1)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
    assert len(plans) == 1


def test_planning_leaves_no_batch_allocated(weights):
    def step(x):
        with tf.GradientTape() as tape:
            y = x
            for _ in range(8):
                y = tf.tanh(y @ weights)
        # Without a sum, whose gradient TensorFlow keeps as a constant of the batch's size.
        return tape.gradient(y, weights, output_gradients=x)

    kept = checkmate_tf.rematerialize(step, budget=0.9, time_limit=2)
    x = tf.ones((20_000, SIZE))
    gc.collect()
    gc.disable()
    try:
        before = held_bytes()
        kept(x)
        left = held_bytes() - before
    finally:
        gc.enable()
    assert kept.plan.measured_peak is not None
    assert left < 20_000 * SIZE * 4 / 2
