"""Steps that XLA compiles: they take less memory, compute the same bits, or say why not.

What they take is what the compiler says of the function that trains, around the step.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import warnings
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.program import lower
from checkmate_tf.program.in_place import InPlace
from checkmate_tf.program.order import in_turn
from checkmate_tf.workloads.models import compile_model, residual
from profiles.measure.compilation import compiled_memory
from solvers import BudgetError, CheckmateError
from tests.costs import sweep
from tests.messages import raises, warns
from tests.steps import random_batch, restore, small_cnn, snapshot

# Where kernels have large workspaces, a small net's least lies over any share of its peak.
OPTIONS = {
    "budget": 0.85,
    "on_infeasible": "min",
    "batch_size": 8,
    "time_limit": 2,
    "trial_run": False,
}
IMAGES = np.random.default_rng(0).normal(size=(16, 32, 32, 3)).astype("float32")
LABELS = np.arange(16) % 10


@pytest.fixture
def _gpu_is_listed(monkeypatch):
    """Keras decides by this list whether it compiles; TensorFlow itself has no such device."""
    devices = tf.config.list_physical_devices()
    gpu = tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")
    monkeypatch.setattr(
        tf.config,
        "list_physical_devices",
        lambda kind=None: [each for each in [*devices, gpu] if kind in (None, each.device_type)],
    )


def compile_by_default(model):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="sgd", loss=loss)
    assert model.jit_compile, "otherwise this tests nothing"


def fit(model, epochs=1):
    history = model.fit(IMAGES, LABELS, batch_size=8, epochs=epochs, shuffle=False, verbose=0)
    return history.history["loss"]


class Decorated(keras.Model):
    """As a user writes it."""

    @checkmate_tf.rematerialize(**OPTIONS)
    def train_step(self, data):
        return super().train_step(data)


def of_class():
    plain = small_cnn(side=32)
    model = Decorated(plain.inputs, plain.outputs)
    compile_by_default(model)
    return model


def assigned_before_compile():
    model = small_cnn(side=32)
    model.train_step = checkmate_tf.rematerialize(model.train_step, **OPTIONS)
    compile_by_default(model)
    return model


def assigned_after_compile():
    model = small_cnn(side=32)
    compile_by_default(model)
    model.train_step = checkmate_tf.rematerialize(model.train_step, **OPTIONS)
    return model


def assigned_after_training():
    model = small_cnn(side=32)
    compile_by_default(model)
    fit(model)
    model.train_step = checkmate_tf.rematerialize(model.train_step, **OPTIONS)
    return model


@pytest.mark.usefixtures("_gpu_is_listed")
@pytest.mark.parametrize(
    "build",
    sweep([assigned_after_compile, of_class, assigned_before_compile, assigned_after_training]),
)
def test_kerass_default_on_a_gpu_stays(build):
    model = build()
    start = snapshot(model)
    losses = [fit(model), fit(model)]
    assert model.train_step.plan.compiled_peak is not None
    assert model.jit_compile
    plain = keras.Model(model.inputs, model.outputs)
    plain.compile(optimizer="sgd", loss=model.loss, jit_compile=True)
    for variable, value in zip(model.variables, start[: len(model.variables)], strict=True):
        variable.assign(value)
    np.testing.assert_allclose([fit(plain), fit(plain)], losses, rtol=1e-3)


def within(budget, **options):
    """A model that XLA compiles, to be trained within a share of what its step adds."""
    model = small_cnn(side=32)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="sgd", loss=loss, jit_compile=True)
    return checkmate_tf.rematerialize(model, budget=budget, batch_size=8, time_limit=2, **options)


def test_a_budget_that_no_plan_for_xla_keeps_is_kept_without_it():
    """XLA resizes images through ten times the bytes of the result; TensorFlow does not."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((24, 24, 1))])
    model.add(keras.layers.Resizing(48, 48))
    model.add(keras.layers.Flatten())
    for _ in range(8):
        model.add(keras.layers.Dense(512, use_bias=False))
        model.add(keras.layers.BatchNormalization())
        model.add(keras.layers.Activation("tanh"))
    model.add(keras.layers.Dense(10))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, jit_compile=True)
    checkmate_tf.rematerialize(model, budget=130_000_000, batch_size=2048, time_limit=2)
    images = np.random.default_rng(0).random((4096, 24, 24, 1), np.float32)
    with warns("xla-left"):
        model.fit(images, np.zeros(4096), batch_size=2048, verbose=0)
    plan = model.train_step.plan
    assert not model.jit_compile
    assert plan.compiled_peak is None
    assert plan.measured_peak <= plan.budget


@pytest.mark.slow
def test_a_budget_that_no_plan_keeps_at_all():
    """The error names what is enough; XLA is on as before."""
    model = within(0.2)
    with raises(BudgetError, "budget-too-small") as caught:
        fit(model)
    assert "without XLA" in str(caught.value)
    assert model.jit_compile
    enough = int(1.1 * caught.value.least)  # batches of before may be held still
    fit(checkmate_tf.rematerialize(model, budget=enough, batch_size=8))


@pytest.mark.slow
def test_a_step_that_may_run_plain_is_compiled_where_no_plan_keeps_the_budget():
    model = within(0.2, on_infeasible="plain")
    with warns("runs-without-a-plan"):
        fit(model)
    assert model.jit_compile
    assert model.train_step.plan is None


def dense():
    """Deep enough to have something to recompute, and quickly compiled."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((64,), dtype="float64")])
    for _ in range(8):
        model.add(keras.layers.Dense(64, "tanh", dtype="float64"))
    return model


def fit_dense(model, batch=512):
    """Of three batches the last is smaller."""
    rows = np.random.default_rng(0).normal(size=(2 * batch + batch // 4, 64))
    fitted = model.fit(rows, rows, batch_size=batch, epochs=1, shuffle=False, verbose=0)
    return fitted.history["loss"]


@pytest.mark.slow
@pytest.mark.usefixtures("_gpu_is_listed")
def test_a_step_that_knows_no_model_is_planned_for_xla():
    model = dense()
    model.compile("sgd", "mse")
    assert model.jit_compile, "otherwise this tests nothing"
    train = type(model).train_step
    hidden = {"model": model}
    model.train_step = checkmate_tf.rematerialize(
        lambda data: train(hidden["model"], data), budget=0.7, batch_size=512, time_limit=10
    )
    fit_dense(model)
    assert model.jit_compile
    plan = model.train_step.plan
    assert plan.compiled_peak <= plan.budget < plan.compiled_baseline_peak
    assert any("a batch larger than 512 is not noticed" in note for note in plan.notes)


@pytest.mark.usefixtures("_gpu_is_listed")
def test_a_step_that_is_called_eagerly_is_planned_though_the_model_is_compiled():
    model = small_cnn(side=32)
    compile_by_default(model)
    model.optimizer.build(model.trainable_variables)
    step = checkmate_tf.rematerialize(model.train_step, **OPTIONS)
    step((tf.constant(IMAGES[:8]), tf.constant(LABELS[:8])))
    assert step.plan is not None


WEIGHTS = tf.Variable(tf.random.stateless_normal((64, 64), (1, 2), dtype=tf.float64) / 8)


def free_step(x):
    """Loss and gradient of a deep function."""
    with tf.GradientTape() as tape:
        for _ in range(10):
            x = tf.tanh(x @ WEIGHTS)
        loss = tf.reduce_sum(x)
    return loss, tape.gradient(loss, WEIGHTS)


@pytest.mark.parametrize("how", sweep(["itself, inside another", "nested", "itself"]))
def test_a_function_that_is_compiled_has_a_plan_for_xla(how):
    function = tf.function(free_step, jit_compile=how.startswith("itself"))
    step = checkmate_tf.rematerialize(function, budget=0.7, time_limit=10)
    inner = tf.function(step.__call__)
    outer = {
        "nested": tf.function(inner, jit_compile=True),
        "itself": step,
        "itself, inside another": inner,
    }[how]
    x = tf.random.stateless_normal((1024, 64), (3, 4), dtype=tf.float64)
    plain = tf.function(free_step, jit_compile=True)
    # XLA may take another kernel for the same product of matrices.
    for ours, expected in zip(outer(x), plain(x), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-10)
    assert step.plan.compiled_peak <= step.plan.budget < step.plan.compiled_baseline_peak
    assert "(compiled)" in str(step.plan)


def test_a_budget_that_no_plan_keeps():
    size = tf.TensorSpec((1024, 64), tf.float64)

    def planned(**options):
        step = checkmate_tf.rematerialize(free_step, time_limit=2, **options)
        tf.function(lambda x: step(x), jit_compile=True).get_concrete_function(size)
        return step.plan

    least = planned(budget="min")
    assert least.compiled_peak < least.compiled_baseline_peak
    with raises(BudgetError, "budget-too-small") as caught:
        planned(budget=0.05)
    assert caught.value.least < least.compiled_baseline_peak
    with warns("runs-without-a-plan"):
        assert planned(budget=0.05, on_infeasible="plain") is None
    with warns("leanest-plan-over-budget"):
        leanest = planned(budget=0.05, on_infeasible="min")
    assert leanest.compiled_peak > leanest.budget


def test_a_step_that_reads_tensors_of_the_function_around_it():
    def train(x):
        factor = tf.reduce_mean(x)
        step = checkmate_tf.rematerialize(lambda x: free_step(x * factor), budget=0.7)
        return step(x)

    with raises(CheckmateError, "xla-reads-outer-tensors"):
        tf.function(train, jit_compile=True)(tf.ones((1024, 64), tf.float64))


SIDE, BATCH = 24, 16


def network(optimizer="sgd"):
    model = residual(SIDE, blocks=3)
    compile_model(model, "text")
    if optimizer == "adam":
        model.compile("adam", model.loss, jit_compile=False)
        model.optimizer.build(model.trainable_variables)
    model.train_step(random_batch(BATCH, SIDE))  # makes the metrics
    return model


def temporary(function):
    """Bytes that a compiled function takes while it runs, as the compiler says."""
    data = random_batch(BATCH, SIDE)
    concrete = function.get_concrete_function(data)
    sizes = [tf.TensorSpec(each.shape, each.dtype) for each in data]
    return compiled_memory(concrete, sizes).temporary


def compiled_step(step):
    return tf.function(lambda data: step(data), jit_compile=True)


def ours(model, **options):
    return checkmate_tf.rematerialize(
        model.train_step, **{"budget": 0.65, "time_limit": 4, **options}
    )


def distance(one, other):
    """Euclidean, over all variables together."""
    return np.sqrt(sum(np.sum((a - b) ** 2) for a, b in zip(one, other, strict=True)))


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_less_memory_and_equal_results(optimizer):
    model = network(optimizer)
    start = snapshot(model)
    step = ours(model)
    functions = [compiled_step(model.train_step), compiled_step(step)]
    results = []
    for function in functions:
        restore(model, start)
        for number in range(3):
            function(random_batch(BATCH, SIDE, seed=number))
        results.append(snapshot(model))
    # Sums may be added up in another order: see the test of bits below.
    assert distance(*results) < 1e-3 * distance(start, results[0])
    plain, planned = map(temporary, functions)
    assert planned < 0.68 * plain
    # The plan says what the compiler says of the function around the step.
    plan = step.plan
    assert abs(plan.compiled_baseline_peak - plan.compiled_peak - (plain - planned)) < 4096


_IN_ORDER = "--xla_backend_extra_options=xla_cpu_optimize_for_size=true"
"""Loops are not split, so that sums are added up one after the other."""


@pytest.mark.slow
def test_bits_are_equal_where_sums_are_added_in_order():
    """XLA reads its flags once, hence the process. Without this one bits differ on some processors.

    On them LLVM adds up in fewer parts where the loop of a sum needs more registers.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.compiled_trial"],
        env={**os.environ, "XLA_FLAGS": _IN_ORDER, "CHECKMATE_TF_PLANS": "off"},
        check=True,
        stdout=subprocess.PIPE,
    )
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["recomputations"] > 0, "otherwise this tests nothing"
    assert figures["repeats"]
    assert figures["different"] == 0, figures


@pytest.mark.slow
def test_without_ties_nothing_is_saved(monkeypatch):
    """So the test above could fail."""
    monkeypatch.setattr(
        lower, "tied", lambda extraction, schedule, _: in_turn(extraction, schedule, InPlace())
    )
    step = ours(network(), on_infeasible="min")
    with pytest.warns(checkmate_tf.CheckmateWarning) as caught:
        compiled_step(step).get_concrete_function(random_batch(BATCH, SIDE))
    over_budget = ("leanest-plan-over-budget", "no-plan-saves-memory")
    assert caught[0].message.code in over_budget
    assert step.plan.compiled_peak > 0.99 * step.plan.compiled_baseline_peak


@pytest.mark.parametrize("steps", sweep([2, 1]))
def test_fit_that_was_asked_to_compile(steps):
    """The last batch is smaller, and compiled for itself."""
    models, losses = [], []
    for budget in (None, 0.7):
        model = dense()
        model.compile("sgd", "mse", jit_compile=True, steps_per_execution=steps)
        if budget is not None:
            checkmate_tf.rematerialize(model, budget=budget, batch_size=512, time_limit=2)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            losses.append(fit_dense(model))
        models.append(model)
    np.testing.assert_allclose(*losses, rtol=1e-6)  # Keras keeps losses in float32
    for one, other in zip(*(each.trainable_variables for each in models), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), atol=1e-12)
    assert models[1].jit_compile
    plan = models[1].train_step.plan
    assert plan.compiled_peak <= plan.budget < plan.compiled_baseline_peak


@pytest.mark.usefixtures("_gpu_is_listed")
def test_what_prepares_a_model_does_not_keep_it_alive():
    model = assigned_before_compile()
    fit(model)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
