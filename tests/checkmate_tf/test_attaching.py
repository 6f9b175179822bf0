"""A budget on a Keras model: put on, kept by copies, taken off; beside Keras' own training."""

from __future__ import annotations

import copy
import pickle
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import checkmate_tf
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.step import RematerializedStep
from solvers import CheckmateError
from tests.costs import sweep
from tests.dense_steps import BATCH, QUICK, SIZE, adam, dense_model, fit, numbers, same, variables
from tests.messages import codes, raises, warns

DEPTH = 6


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = [layers.Dense(SIZE, activation="tanh") for _ in range(DEPTH)]
        self.last = layers.Dense(1)

    def call(self, x):
        for layer in self.hidden:
            x = layer(x)
        return self.last(x)


class Counting(Subclassed):
    """With a train_step of its own, which its class says."""

    def train_step(self, data):
        return {**super().train_step(data), "twice": self.optimizer.iterations * 2}


def functional():
    return dense_model(depth=DEPTH)


def sequential():
    hidden = [layers.Dense(SIZE, activation="tanh") for _ in range(DEPTH)]
    return keras.Sequential([keras.Input((SIZE,)), *hidden, layers.Dense(1)])


def seeded(make):
    keras.utils.set_random_seed(0)
    return make()


def compiled(make, optimizer="sgd"):
    model = seeded(make)
    model.compile(optimizer, "mse", jit_compile=False)
    return model


def attached(model, **options):
    return checkmate_tf.rematerialize(model, **{**QUICK, "batch_size": BATCH, **options})


@pytest.mark.parametrize("make", sweep([Counting, functional, sequential]))
def test_fit_and_train_on_batch_and_a_later_compile(make):
    def train(model):
        fit(model, validation_data=numbers(seed=2))
        logs = model.train_on_batch(*numbers(seed=1), return_dict=True)
        model.compile(adam(), "mse", jit_compile=False)
        fit(model)
        return logs

    ours, plain = compiled(make), compiled(make)
    assert attached(ours) is ours
    logs, expected = train(ours), train(plain)
    assert logs.keys() == expected.keys()
    assert ours.train_step.plan is not None
    assert int(ours.optimizer.iterations) == 2
    same(variables(ours), variables(plain))


def test_a_model_that_has_been_fitted_and_one_that_is_not_compiled_yet():
    fitted, plain = compiled(functional), compiled(functional)
    for each in (fitted, plain):
        fit(each)
    attached(fitted)
    for each in (fitted, plain):
        fit(each)
    assert fitted.train_step.plan is not None
    same(variables(fitted), variables(plain))
    later = attached(seeded(functional))
    with pytest.raises(ValueError, match="compile"):  # of Keras itself
        fit(later)
    later.compile("sgd", "mse")
    for _ in range(2):
        fit(later)
    assert later.train_step.plan is not None
    same(variables(later), variables(plain))


class Decorated(Subclassed):
    @checkmate_tf.rematerialize(batch_size=BATCH, **QUICK)
    def train_step(self, data):
        return super().train_step(data)


def own_function(model):
    """A train_step that is no method."""
    method = model.train_step
    model.train_step = lambda data: method(data)
    return model


@pytest.mark.parametrize(
    "make",
    [functional, Counting, Decorated, lambda: own_function(functional())],
    ids=["functional", "own method", "decorated class", "own function"],
)
def test_restored_models_train_as_before(make):
    ours, plain = compiled(make), compiled(make)
    assert checkmate_tf.restore(plain) is plain
    before = vars(plain).keys()
    attached(ours)
    fit(ours)
    fit(plain)
    step = ours.train_step
    assert checkmate_tf.restore(ours) is ours
    assert not isinstance(ours.train_step, RematerializedStep)
    assert {"make_train_function", "__reduce_ex__"}.isdisjoint(vars(ours).keys() - before)
    made = step.plan
    fit(ours)
    fit(plain)
    assert step.plan is made
    same(variables(ours), variables(plain))


@keras.saving.register_keras_serializable()
class ByPython(layers.Layer):
    """XLA can't compile what it does."""

    def call(self, x):
        one = tf.numpy_function(lambda: np.float32(1), [], tf.float32)
        return x * tf.stop_gradient(tf.ensure_shape(one, ()))


def test_xla_is_left_where_it_cannot_compile_and_is_back_after_restoring():
    model = seeded(functional)
    model = keras.Model(model.inputs, ByPython()(model.outputs[0]))
    model.compile("sgd", "mse", jit_compile=True)
    attached(model)
    with warns("xla-left"):
        fit(model)
    assert not model.jit_compile
    assert model.train_step.plan.compiled_peak is None
    assert checkmate_tf.restore(model).jit_compile
    attached(model)
    with warns("xla-left"):
        fit(model)
    model.compile("sgd", "mse", jit_compile=False)
    assert not checkmate_tf.restore(model).jit_compile


def test_a_new_budget_replaces_the_old_one():
    model = compiled(functional)
    step = model.train_step
    held = held_bytes() or 0  # by what earlier tests left in this process
    for budget in (held + (64 << 20), held + (48 << 20)):
        attached(model, budget=budget)
        fit(model)
        assert model.train_step.plan.budget == budget
    assert checkmate_tf.restore(model).train_step == step


def assigned(model):
    """As a budget may also come to a model."""
    model.train_step = attached(model.train_step)
    return model


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
}


@pytest.mark.parametrize(
    ("put", "make_copy"),
    [(assigned, COPIES["deepcopy"]), *((attached, each) for each in COPIES.values())],
    ids=["assigned", *COPIES],
)
def test_copies_keep_the_budget(put, make_copy):
    original, plain = put(compiled(functional)), compiled(functional)
    fit(original)
    fit(plain)
    before = variables(original)
    other = make_copy(original)
    assert other.train_step.request == original.train_step.request
    fit(other)
    fit(plain)
    assert other.train_step.plan is not None
    same(variables(other), variables(plain))
    same(variables(original), before)
    bare = make_copy(checkmate_tf.restore(original))
    assert not isinstance(bare.train_step, RematerializedStep)


def test_a_file_holds_no_budget_and_nothing_is_said_of_each(tmp_path):
    model = attached(compiled(functional))
    fit(model)
    checkpoints = keras.callbacks.ModelCheckpoint(tmp_path / "model.keras")
    checkpoints.set_model(model)
    with warnings.catch_warnings(record=True) as caught:  # of files, not of what a plan needs
        warnings.simplefilter("always")
        checkpoints.on_epoch_end(0, {})
    assert not codes(caught)
    loaded = keras.models.load_model(tmp_path / "model.keras")
    same(variables(loaded), variables(model))
    assert not isinstance(loaded.train_step, RematerializedStep)
    fit(attached(loaded))
    assert loaded.train_step.plan is not None


def test_what_is_no_model_of_tensorflow_is_refused(monkeypatch):
    with raises(CheckmateError, "not-a-keras-model"):
        checkmate_tf.restore(lambda x: x)
    with raises(CheckmateError, "not-a-step", "'Subclassed'"):
        attached(Subclassed)
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    with raises(CheckmateError, "keras-backend-unsupported", "KERAS_BACKEND=tensorflow"):
        attached(functional())
