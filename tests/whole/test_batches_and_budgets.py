"""Batches of several sizes, eager functions, too small budgets: training goes on, or says why."""

from __future__ import annotations

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.devices.measure import held_bytes
from solvers import BudgetError, CheckmateError
from tests.dense_steps import (
    BATCH,
    OVER,
    QUICK,
    SIZE,
    dense_model,
    fit,
    loss_and_gradient,
    numbers,
    same,
    some_weights,
    variables,
)
from tests.messages import raises, warns


@pytest.fixture
def weights():
    return some_weights()


def test_a_larger_batch_than_was_said_gets_a_plan_of_its_own(weights):
    step = checkmate_tf.rematerialize(loss_and_gradient(weights), batch_size=64, **QUICK)
    step(tf.ones((64, SIZE)))
    small = step.plan
    with warns("larger-batch-came", 512, "batch_size=64") as caught:
        step(tf.ones((512, SIZE)))
    assert caught[0].filename == __file__
    large = step.plan
    assert large.baseline_peak > small.baseline_peak
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=OVER)
        step(tf.ones((512, SIZE)))
        step(tf.ones((100, SIZE)))
    assert step.plan is large


def test_a_larger_batch_than_was_said_in_fit():
    """The graph is built by then; Keras makes another for the steps that follow."""
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    model.train_step = checkmate_tf.rematerialize(model.train_step, batch_size=4, **QUICK)
    x, y = numbers(8 * 32)
    with warns("larger-batch-came", 32, "batch_size=4") as caught:
        model.fit(x, y, batch_size=32, epochs=2, verbose=0, shuffle=False)
    assert len(caught) == 1
    sized = {out for node in model.train_step.plan.graph.nodes for out in [node.memory]}
    assert max(sized) >= 32 * SIZE * 4
    plain = dense_model()
    plain.compile("sgd", "mse", jit_compile=False)
    plain.fit(x, y, batch_size=32, epochs=2, verbose=0, shuffle=False)
    same(variables(model), variables(plain))


def test_functions_that_run_eagerly_run_the_plain_step(weights):
    step = checkmate_tf.rematerialize(loss_and_gradient(weights), **QUICK)
    x = tf.ones((256, SIZE))
    tf.config.run_functions_eagerly(True)
    try:
        with warns("runs-eagerly"):
            loss, _ = step(x)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", message=OVER)
            assert float(step(x)[0]) == float(loss)
    finally:
        tf.config.run_functions_eagerly(False)
    assert step.plan is None
    assert float(step(x)[0]) == pytest.approx(float(loss), rel=1e-5)
    assert step.plan is not None


def test_a_model_that_runs_eagerly_runs_the_plain_step():
    model = dense_model()
    model.train_step = checkmate_tf.rematerialize(model.train_step, **QUICK)
    model.compile("sgd", "mse", run_eagerly=True)
    with warns("runs-eagerly"):
        fit(model)
    assert model.train_step.plan is None


def test_a_share_counts_from_the_largest_signature(weights):
    step = checkmate_tf.rematerialize(
        loss_and_gradient(weights), budget=0.6, time_limit=1, trial_run=False
    )
    step(tf.ones((8192, SIZE)))
    assert step.plan.budget < step.plan.baseline_peak
    step(tf.ones((7, SIZE)))
    assert step.plan.budget > step.plan.baseline_peak
    assert len(step.plan.schedule) == len(step.plan.graph)


@pytest.mark.usefixtures("memory_in_one_piece")
def test_training_goes_on_when_a_smaller_batch_comes(weights):
    """Even where its plan can't keep a budget that is used up by what else is held now."""
    plain = loss_and_gradient(weights)
    x = tf.ones((4096, SIZE))
    held = held_bytes()
    room = int(0.9 * (checkmate_tf.measure_peak(tf.function(plain), x) - held))
    step = checkmate_tf.rematerialize(plain, budget=held + room, time_limit=1, trial_run=False)
    step(x)
    beside = tf.ones((room // 4,))
    small = tf.ones((1024, SIZE))
    with warns("leanest-plan-runs"):
        loss, _ = step(small)
    np.testing.assert_allclose(loss, tf.function(plain)(small)[0], rtol=1e-4)
    del beside


def test_a_smaller_last_batch_of_a_data_set_with_known_shapes():
    """Keras traces again, for batches of any size."""
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    model.train_step = checkmate_tf.rematerialize(model.train_step, **QUICK)
    x, y = numbers(100)
    pieces = [(x[:64], y[:64]), (x[64:], y[64:])]
    for piece in pieces:
        model.fit(tf.data.Dataset.from_tensors(piece), verbose=0)
    assert model.train_step.plan is not None
    plain = dense_model()
    plain.compile("sgd", "mse", jit_compile=False)
    for piece in pieces:
        plain.fit(tf.data.Dataset.from_tensors(piece), verbose=0)
    same(variables(model), variables(plain))


def test_too_small_a_budget_inside_a_function_of_ones_own(weights):
    step = checkmate_tf.rematerialize(
        loss_and_gradient(weights), **{**QUICK, "budget": "1MB"}, time_limit=1
    )

    @tf.function
    def outer(x):
        return step(x)

    with raises(BudgetError, "budget-too-small") as caught:
        outer(tf.ones((1024, SIZE)))
    assert caught.value.least > 2**20


def test_a_budget_error_in_fit_is_a_budget_error():
    model = dense_model(depth=24)  # of which plans surely take less than it does as it is
    model.compile("sgd", "mse", jit_compile=False)
    model.train_step = checkmate_tf.rematerialize(
        model.train_step, budget=100_000, batch_size=8 * BATCH, time_limit=1
    )
    with raises(BudgetError, "budget-too-small"):
        fit(model, 8 * BATCH)


def test_a_budget_error_in_a_layer_is_the_steps_own(weights):
    """Keras makes errors anew that arise in a layer's call, of their text alone."""
    step = checkmate_tf.rematerialize(
        loss_and_gradient(weights), **{**QUICK, "budget": "1MB"}, time_limit=1
    )

    class Layer(keras.layers.Layer):
        def call(self, x):
            return step(x)

    with raises(BudgetError, "budget-too-small") as caught:
        Layer()(tf.ones((1024, SIZE)))
    assert caught.value.least > 2**20


def test_errors_pass_through_autograph_unchanged():
    error = CheckmateError("graph-empty", "what and where")

    @tf.function
    def outer(x):
        raise error

    with pytest.raises(CheckmateError) as caught:
        outer(tf.ones(3))
    assert caught.value is error
