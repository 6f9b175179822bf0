"""Where XLA would compile the step: it is switched off with a warning, or an error says so."""

from __future__ import annotations

import gc
import warnings
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

import checkmate_tf
from solvers import CheckmateError
from tests.steps import small_cnn, snapshot

OPTIONS = {"budget": 0.85, "batch_size": 8, "time_limit": 2, "trial_run": False}
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


def xla_warnings(caught):
    return [each for each in caught if "XLA is switched off" in str(each.message)]


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
    "build", [of_class, assigned_before_compile, assigned_after_compile, assigned_after_training]
)
def test_kerass_default_on_a_gpu_trains_without_xla(build):
    model = build()
    start = snapshot(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        losses = [fit(model), fit(model)]
    assert len(xla_warnings(caught)) == 1
    assert "leave rematerialize out" in str(xla_warnings(caught)[0].message)
    assert model.train_step.plan is not None
    assert not model.jit_compile
    plain = keras.Model(model.inputs, model.outputs)
    plain.compile(optimizer="sgd", loss=model.loss, jit_compile=False)
    for variable, value in zip(model.variables, start[: len(model.variables)], strict=True):
        variable.assign(value)
    np.testing.assert_allclose([fit(plain), fit(plain)], losses, rtol=1e-3)


@pytest.mark.usefixtures("_gpu_is_listed")
def test_a_second_compile_is_switched_off_again():
    model = of_class()
    with pytest.warns(UserWarning, match="XLA is switched off"):
        fit(model)
    compile_by_default(model)
    fit(model)
    assert not model.jit_compile


@pytest.mark.usefixtures("_gpu_is_listed")
def test_a_step_that_knows_no_model_is_an_error_and_never_silent():
    model = small_cnn(side=32)
    compile_by_default(model)
    train = type(model).train_step
    hidden = {"model": model}
    model.train_step = checkmate_tf.rematerialize(
        lambda data: train(hidden["model"], data), **OPTIONS
    )
    with pytest.raises(CheckmateError, match="compiled by XLA"):
        fit(model)


@pytest.mark.usefixtures("_gpu_is_listed")
def test_a_step_that_is_called_eagerly_is_planned_though_the_model_is_compiled():
    model = small_cnn(side=32)
    compile_by_default(model)
    model.optimizer.build(model.trainable_variables)
    step = checkmate_tf.rematerialize(model.train_step, **OPTIONS)
    step((tf.constant(IMAGES[:8]), tf.constant(LABELS[:8])))
    assert step.plan is not None


@checkmate_tf.rematerialize(**OPTIONS)
def free_step(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(tf.tanh(tf.tanh(x @ x) @ x))
    return tape.gradient(loss, x)


@pytest.mark.parametrize("nested", [False, True])
def test_inside_a_function_that_is_compiled_it_is_an_error(nested):
    inner = tf.function(lambda x: free_step(x)) if nested else free_step
    outer = tf.function(lambda x: inner(x), jit_compile=True)
    with pytest.raises(CheckmateError, match="compiled by XLA"):
        outer(tf.ones((64, 64)))
    with pytest.raises(CheckmateError, match="compiled by XLA"):
        checkmate_tf.rematerialize(tf.function(tf.sin, jit_compile=True), **OPTIONS)(tf.ones(8))


@pytest.mark.usefixtures("_gpu_is_listed")
def test_what_prepares_a_model_does_not_keep_it_alive():
    model = assigned_before_compile()
    fit(model)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
