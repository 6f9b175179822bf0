"""A plan belongs to what was traced: results are those of the step without the decorator.

Every test compares with the plain step: Keras' own `fit`, or `tf.function`.
"""

from __future__ import annotations

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.devices.measure import held_bytes
from tests.dense_steps import (
    BATCH,
    OVER,
    QUICK,
    SIZE,
    adam,
    both,
    dense_model,
    fit,
    loss_and_gradient,
    numbers,
    same,
    some_weights,
)
from tests.messages import warns


def test_a_new_optimizer_is_used_after_a_second_compile():
    def story(model, decorate):
        decorate(model, batch_size=BATCH)
        model.compile("sgd", "mse", jit_compile=False)
        fit(model)
        model.compile(adam(), "mse", jit_compile=False)
        fit(model)

    assert int(both(story).optimizer.iterations) == 2


@pytest.mark.slow
def test_a_new_optimizer_is_used_by_a_loop_of_ones_own():
    def story(model, decorate):
        decorate(model)
        x, y = map(tf.constant, numbers())
        for optimizer in ("sgd", adam()):
            model.compile(optimizer, "mse", jit_compile=False)
            model.optimizer.build(model.trainable_variables)
            for _ in range(2):
                model.train_step((x, y))

    assert int(both(story).optimizer.iterations) == 2


@pytest.mark.parametrize("in_fit", [True, False])
def test_what_is_trainable_may_change_between_fits(in_fit):
    def train(model):
        if in_fit:
            fit(model)
        else:
            model.train_step(tuple(map(tf.constant, numbers())))

    def story(model, decorate):
        decorate(model, batch_size=BATCH)
        for trainable in (False, True):
            model.get_layer("dense_1").trainable = trainable
            model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=False)
            model.optimizer.build(model.trainable_variables)
            train(model)

    both(story)


@pytest.mark.parametrize("how", ["method", "closure", "global"])
def test_a_decorator_after_fit_is_not_ignored(how):
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    fit(model)
    if how == "method":
        step = checkmate_tf.rematerialize(model.train_step, batch_size=BATCH, **QUICK)
    elif how == "closure":
        original = model.train_step
        step = checkmate_tf.rematerialize(lambda data: original(data), batch_size=BATCH, **QUICK)
    else:
        names = {"model": model, "original": model.train_step}
        exec("def own_step(data):\n    return original(data) if model else None", names)
        step = checkmate_tf.rematerialize(names["own_step"], batch_size=BATCH, **QUICK)
    model.train_step = step
    fit(model)
    assert step.plan is not None


def test_to_decorate_twice_is_to_plan_anew():
    """As when a cell of a notebook runs twice."""
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    held = held_bytes() or 0
    # Bytes, for a share counts from what is held, also by batches that are on their way.
    for budget in (held + (64 << 20), held + (48 << 20)):
        model.train_step = checkmate_tf.rematerialize(
            model.train_step, batch_size=BATCH, **{**QUICK, "budget": budget}
        )
        fit(model)
        assert model.train_step.plan.budget == budget
    assert not hasattr(model.train_step.function, "plan")


def test_models_with_the_same_name_as_arguments_are_two():
    def make():
        models = [dense_model(seed) for seed in (1, 2)]
        for model in models:
            model.name = "twin"
        return models

    def step(model, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        for weight, gradient in zip(
            model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
        ):
            weight.assign_sub(0.1 * gradient)
        return loss

    x, y = map(tf.constant, numbers())
    ours, plain = make(), make()
    rematerialized = checkmate_tf.rematerialize(step, **QUICK)
    traced = tf.function(step)
    for one, other in zip(ours, plain, strict=True):
        np.testing.assert_allclose(rematerialized(one, x, y), traced(other, x, y), rtol=1e-5)
    for one, other in zip(ours, plain, strict=True):
        same([np.array(v) for v in one.variables], [np.array(v) for v in other.variables])


def test_variables_as_arguments_are_told_apart():
    """Of equal shapes, too, also where only the values in them differ."""

    def step(weights, x):
        with tf.GradientTape() as tape:
            y = x
            for _ in range(8):
                y = tf.tanh(y @ weights[0])
            loss = tf.reduce_sum(y)
        weights[0].assign_sub(1e-5 * tape.gradient(loss, weights[0]))
        return loss

    def make():
        return [tf.Variable(tf.eye(SIZE) * number) for number in (0.5, 0.9)]

    step_of_ours = checkmate_tf.rematerialize(step, **QUICK)
    x = tf.random.stateless_normal((512, SIZE), (1, 2))
    ours, plain = make(), make()
    for _ in range(2):
        for one, other in zip(ours, plain, strict=True):
            loss = step_of_ours([one], x)
            np.testing.assert_allclose(loss, tf.function(step)([other], x), rtol=1e-4)
    same([each.numpy() for each in ours], [each.numpy() for each in plain])


class Scale:
    """All scales look alike."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return "Scale()"


def scaled_loss(scale, x):
    return tf.reduce_sum(tf.exp(x) * tf.exp(-x)) * scale.value


def test_objects_with_equal_texts_are_two():
    step = checkmate_tf.rematerialize(scaled_loss, **{**QUICK, "budget": 1.0})
    x = tf.ones((256, 256))
    scales = [Scale(1.0), Scale(2.0)]
    assert [float(step(each, x)) for each in scales] == [256.0**2, 2 * 256.0**2]


@pytest.fixture
def weights():
    return some_weights()


def test_a_changing_number_keeps_the_plan_and_is_named(weights):
    plain = loss_and_gradient(weights)
    step = checkmate_tf.rematerialize(plain, **QUICK)
    x = tf.ones((1024, SIZE))
    solutions = []

    def train(rate):
        loss, gradient = step(x, rate)
        expected_loss, expected = tf.function(plain)(x, rate)
        np.testing.assert_allclose(loss, expected_loss, rtol=1e-4)
        np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-4)
        solutions.append(step.plan.solution)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=OVER)
        for rate in (0.1, 0.2, 0.3):
            train(rate)
    with warns("retraced-often", "'rate'", "tensor") as caught:
        train(0.4)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=OVER)
        train(0.5)
    assert all(each is solutions[0] for each in solutions)


def test_arguments_as_python_binds_them(weights):
    step = checkmate_tf.rematerialize(loss_and_gradient(weights), **QUICK)
    x = tf.ones((512, SIZE))
    first = float(step(x)[0])
    assert float(step(x=x)[0]) == first
    assert float(step(x, rate=1.0)[0]) == first
    assert float(step(rate=2.0, x=x)[0]) == pytest.approx(2 * first, rel=1e-5)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        step()


def test_a_concrete_function_is_planned(weights):
    plain = tf.function(loss_and_gradient(weights))
    x = tf.random.stateless_normal((512, SIZE), (1, 2))
    step = checkmate_tf.rematerialize(plain.get_concrete_function(x), **QUICK)
    np.testing.assert_allclose(step(x)[0], plain(x)[0], rtol=1e-4)
    assert step.plan is not None


def test_a_method_that_is_a_tf_function_is_planned_for_each_object():
    class Trainer:
        def __init__(self, factor):
            self.weights = tf.Variable(factor * tf.eye(SIZE))

        @checkmate_tf.rematerialize(**QUICK)
        @tf.function
        def step(self, x):
            return loss_and_gradient(self.weights)(x)

    x = tf.random.stateless_normal((512, SIZE), (1, 2))
    for each in (Trainer(0.5), Trainer(0.7)):
        expected = tf.function(loss_and_gradient(each.weights))(x)[0]
        np.testing.assert_allclose(each.step(x)[0], expected, rtol=1e-4)
        assert each.step.plan is not None


def test_an_input_signature_is_kept(weights):
    signature = [tf.TensorSpec((None, SIZE), tf.float32)]
    plain = tf.function(lambda x: loss_and_gradient(weights)(x), input_signature=signature)
    step = checkmate_tf.rematerialize(plain, batch_size=512, **QUICK)
    x = np.full((512, SIZE), 0.1)
    np.testing.assert_allclose(step(x.tolist())[0], plain(x.tolist())[0], rtol=1e-4)
    assert step.plan is not None
    with pytest.raises(TypeError, match="cast"):
        step(tf.ones((3, SIZE + 1)))


@pytest.mark.parametrize("value", [tf.ragged.constant([[1.0], [2.0, 3.0]]), tf.sparse.eye(3)])
@pytest.mark.parametrize("outer", [lambda step: step, tf.function], ids=["eager", "outer"])
def test_arguments_whose_size_depends_on_values_run_without_a_plan(value, outer):
    step = checkmate_tf.rematerialize(lambda x, factor: x * tf.identity(factor), **QUICK)
    factor = tf.Variable(2.0)
    with warns("argument-of-unknown-size", type(value).__name__, "dense"):
        doubled = outer(lambda x: step(x, factor))(value)
    assert np.array_equal(doubled.values, 2 * value.values)
    assert step.plan is None
