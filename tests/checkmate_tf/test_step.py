"""A step by itself: before its first call, copied, in objects of all kinds, and where none fits."""

from __future__ import annotations

import copy
import dataclasses
import functools
import pickle
import traceback
import warnings
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import checkmate_tf
from solvers import BudgetError, CheckmateError
from tests.dense_steps import (
    QUICK,
    SIZE,
    dense_model,
    fit,
    loss_and_gradient,
    numbers,
    some_weights,
)
from tests.messages import codes, raises, warns

X = tf.random.stateless_normal((512, SIZE), (1, 2))


def same_results(ours, plain):
    for one, other in zip(ours, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_before_the_first_call_the_plan_says_when_it_is_made():
    step = checkmate_tf.rematerialize(loss_and_gradient(some_weights()), **QUICK)
    assert "made when the step is called for the first time" in str(step.plan)
    assert not step.plan
    with raises(CheckmateError, "plan-not-made-yet", "'budget'"):
        print(step.plan.budget)
    step(X)
    assert step.plan.budget > 0


def with_wraps(step):
    @functools.wraps(step)
    def around(x):
        return step(x)

    return around


@pytest.mark.parametrize("wrapped", [tf.function, with_wraps])
def test_what_wraps_a_step_has_its_plan(wrapped):
    step = checkmate_tf.rematerialize(loss_and_gradient(some_weights()), **QUICK)
    around = wrapped(step)
    assert "made when the step is called for the first time" in str(around.plan)
    around(X)
    assert around.plan
    assert around.plan.budget == step.plan.budget
    assert str(around.plan) == str(step.plan)
    assert repr(around.plan) == repr(step.plan)


weights = some_weights()


@checkmate_tf.rematerialize(**QUICK)
def decorated(x):
    return loss_and_gradient(weights)(x)


def plain_one(x):
    return loss_and_gradient(weights)(x)


function = checkmate_tf.rematerialize(plain_one, **QUICK)


def step_of(self, x):
    return loss_and_gradient(self.kernel)(x)


def dataclass_with_a_step(**options):
    """A dataclass, which can't be hashed, and which may have slots."""

    class Trainer:
        kernel: Any
        step = checkmate_tf.rematerialize(step_of, **QUICK)

    Trainer.__annotations__ = {"kernel": Any}
    return dataclasses.dataclass(**options)(Trainer)


class Trainer:
    def __init__(self, factor):
        self.factor = factor
        self.made = None

    @checkmate_tf.rematerialize(**QUICK)
    def step(self, x):
        return loss_and_gradient(self.factor * tf.eye(SIZE))(x)[0], self.factor


@pytest.mark.parametrize(
    "options", [{}, {"frozen": True}, {"slots": True}, {"slots": True, "frozen": True}], ids=str
)
def test_methods_of_dataclasses(options):
    kind = dataclass_with_a_step(**options)
    kernels = weights, tf.Variable(0.5 * weights)
    for kernel in (*kernels, kernels[0]):
        same_results(kind(kernel).step(X), tf.function(loss_and_gradient(kernel))(X))


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))]
)
def test_copies_of_a_step(again):
    """A function of a module is found by its name, as Python does; others plan for themselves."""
    expected = plain_one(X)
    assert again(decorated) is decorated
    other = again(function)
    assert other is not function
    assert other.request == function.request
    same_results(other(X), expected)
    assert other.plan is not None
    trainer = Trainer(0.5)
    trainer.step(X)
    method = again(trainer.step)
    assert (method is trainer.step) == (again is copy.copy)
    if method is not trainer.step:
        method.function.__self__.factor = 0.25
        assert float(method(X)[1]) == 0.25
    assert trainer.factor == 0.5


TIGHT = {"budget": "100KB", "time_limit": 1, "trial_run": False}
"""Less than the variables take."""


def test_what_happens_where_no_plan_is_found():
    plain = loss_and_gradient(weights)
    expected = tf.function(plain)(X)
    with raises(BudgetError, "budget-too-small"):
        checkmate_tf.rematerialize(plain, **TIGHT, on_infeasible="error")(X)
    leanest = checkmate_tf.rematerialize(plain, **TIGHT, on_infeasible="min")
    with warns("leanest-plan-runs"):
        same_results(leanest(X), expected)
    assert leanest.plan.predicted_peak < leanest.plan.baseline_peak
    assert any("too small" in note for note in leanest.plan.notes)
    plainly = checkmate_tf.rematerialize(plain, **TIGHT, on_infeasible="plain")
    with warns("runs-without-a-plan"):
        same_results(plainly(X), expected)
    assert plainly.plan is None
    with raises(CheckmateError, "argument-invalid", "'perhaps'"):
        checkmate_tf.rematerialize(plain, budget=0.5, on_infeasible="perhaps")


@pytest.mark.usefixtures("memory_in_one_piece")
def test_a_step_over_its_budget_is_said_in_fit():
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    enough = checkmate_tf.devices.measure.held_bytes() + (1 << 30)
    checkmate_tf.rematerialize(model, **{**QUICK, "budget": enough, "batch_size": 256})
    fit(model)
    held = checkmate_tf.devices.measure.held_bytes()
    checkmate_tf.rematerialize(model, **{**QUICK, "budget": held + (8 << 20), "batch_size": 256})
    fit(model)
    beside = tf.ones((8, 1 << 20))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            fit(model)
    [said] = [each for each in caught if codes([each]) == ["over-budget-plan-kept"]]
    assert "/tests/" in said.filename
    del beside


@pytest.mark.usefixtures("memory_in_one_piece")
def test_planning_in_the_midst_of_fit_is_no_step_over_its_budget(recwarn):
    """Keras traces again where a batch of another size comes."""
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    budget = checkmate_tf.devices.measure.held_bytes() + (16 << 20)
    checkmate_tf.rematerialize(model, **{**QUICK, "budget": budget})
    x, y = numbers(100)
    for part in (slice(64), slice(64, 100), slice(64)):
        model.fit(tf.data.Dataset.from_tensors((x[part], y[part])), verbose=0)
    assert model.train_step.plan is not None
    assert not [each for each in codes(recwarn) if "over-budget" in each]


def failing(x):
    y = tf.exp(x)
    return helper(y)


def helper(y):
    raise ValueError("the user's own")


@pytest.mark.parametrize("outer", [lambda step: step, tf.function], ids=["eager", "outer"])
@pytest.mark.parametrize("batch_size", [None, 512])
def test_an_error_in_the_step_shows_the_users_lines_alone(outer, batch_size):
    def shown(function):
        with pytest.raises(ValueError, match="the user's own") as caught:
            function(X)
        text = "".join(traceback.format_exception(caught.value))
        files = {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
        return text, files

    step = checkmate_tf.rematerialize(failing, **QUICK, batch_size=batch_size)
    text, files = shown(outer(step))
    expected, _ = shown(outer(tf.function(failing)))
    assert "in helper" in text
    assert "in helper" in expected
    ours = {each for each in files if "/checkmate_tf/" in each and "/tests/" not in each}
    assert {each.rpartition("/")[2] for each in ours} <= {"step.py"}  # where it is raised again
    assert "During handling" not in text


def test_a_budget_that_is_too_small_shows_no_line_of_planning():
    options = {**QUICK, "budget": "20KiB"}  # the weights alone are 16
    step = checkmate_tf.rematerialize(loss_and_gradient(some_weights()), **options)
    named = ("budget=", '"min"')
    with raises(checkmate_tf.BudgetError, "budget-too-small", *named) as caught:
        step(X)
    files = {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
    ours = {each for each in files if "/checkmate_tf/" in each and "/tests/" not in each}
    assert {each.rpartition("/")[2] for each in ours} <= {"step.py"}


def test_a_train_step_of_keras_is_traced_once_when_it_is_called_by_itself():
    traces = []

    class Counting(keras.layers.Dense):
        def call(self, inputs, training=None):
            if not isinstance(inputs, keras.KerasTensor) and training:
                traces.append(inputs)
            return super().call(inputs)

    inputs = keras.Input((8,))
    outputs = keras.layers.Dense(2)(Counting(32, activation="tanh")(inputs))
    model = keras.Model(inputs, outputs)
    model.compile("sgd", "mse", metrics=["mae"])
    step = checkmate_tf.rematerialize(model.train_step, budget="1GiB")
    result = step((tf.ones((16, 8)), tf.ones((16, 2))))
    assert len(traces) == 1
    assert set(result) == {"loss", "mae"}
