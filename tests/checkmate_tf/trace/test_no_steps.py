"""What people give for a train step that is none: errors at once, which say what to give."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import checkmate_tf
from tests.messages import raises

IMAGES, LABELS = np.zeros((4, 8), np.float32), np.zeros((4, 2), np.float32)


class OwnLoss(keras.losses.Loss):
    def call(self, expected, predicted):
        return tf.reduce_sum((expected - predicted) ** 2)


class OwnModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(2)

    def call(self, inputs):
        return self.dense(inputs)

    def my_step(self, inputs):
        return tf.reduce_sum(self(inputs))


def trained():
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(IMAGES, LABELS, verbose=0)
    return model


@pytest.mark.parametrize("name", ["fit", "evaluate", "predict", "train_on_batch"])
def test_what_runs_the_step_of_a_model(name):
    with raises(checkmate_tf.CheckmateError, "not-a-step", "rematerialize(model", f"model.{name}"):
        checkmate_tf.rematerialize(getattr(trained(), name), budget=0.5)


@pytest.mark.parametrize(
    "part",
    [
        lambda: keras.losses.MeanSquaredError(),
        lambda: OwnLoss(),
        lambda: keras.metrics.Mean(),
        lambda: keras.optimizers.SGD(),
        lambda: keras.layers.Dense(3),
        lambda: keras.losses.mean_squared_error,
        lambda: trained().layers[0].call,
        lambda: trained().train_function,
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        lambda part: checkmate_tf.rematerialize(part, budget=0.5),
        lambda part: checkmate_tf.rematerialize(budget=0.5)(part),
        lambda part: checkmate_tf.tradeoff(part, IMAGES),
        lambda part: checkmate_tf.largest_batch(part, "1GiB", IMAGES),
    ],
)
def test_a_part_of_a_step(part, use):
    with raises(checkmate_tf.CheckmateError, "not-a-step", "model"):
        use(part())


def test_a_train_function_that_is_not_made_yet():
    model = OwnModel()
    decorator = checkmate_tf.rematerialize(model.train_function, budget=0.5)
    with raises(checkmate_tf.CheckmateError, "not-a-step", "model.train_function"):
        decorator(tf.zeros(3))


def test_steps_are_steps():
    model = trained()
    steps = [
        model.train_step,
        tf.function(model.train_step),
        keras.Model.train_step,
        OwnModel().my_step,
        lambda x: x,
    ]
    for step in steps:
        assert checkmate_tf.rematerialize(step, budget=0.5).plan is not None


def test_a_budget_without_its_name():
    with raises(checkmate_tf.CheckmateError, "argument-unnamed", "budget=0.6"):
        checkmate_tf.rematerialize(lambda x: x, 0.6)
    with raises(checkmate_tf.CheckmateError, "argument-unnamed", "'milp'"):
        checkmate_tf.rematerialize(lambda x: x, "milp", budget=0.5)


def test_a_model_may_be_compiled_later_and_keras_says_where_it_is_not():
    model, plain = (keras.Sequential([keras.Input((8,)), keras.layers.Dense(2)]) for _ in range(2))
    options = {"budget": "1GiB", "batch_size": 4, "trial_run": False, "verbose": 0}
    model = checkmate_tf.rematerialize(model, **options)
    said = []
    for each in (model, plain):
        with pytest.raises(ValueError, match="compile") as caught:
            each.fit(IMAGES, LABELS, verbose=0)
        said.append(str(caught.value))
    assert said[0] == said[1]
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(IMAGES, LABELS, verbose=0)
    assert "no plan yet" not in str(model.train_step.plan)
