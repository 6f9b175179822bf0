"""What Keras does around a step that XLA compiles: each as without a budget, and within it.

On a GPU XLA is Keras' default; on a CPU it is asked for.
"""

from __future__ import annotations

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.planning.kept import plan_store
from profiles.devices import default_device, device_name
from tests.costs import sweep
from tests.messages import announces, codes

COMPILED = {} if tf.config.list_physical_devices("GPU") else {"jit_compile": True}
VALUES_ARE_REAL = not device_name(default_device()).startswith("no GPU")
SIZE, BATCH = 64, 256
ROWS = np.random.default_rng(0).normal(size=(2 * BATCH + BATCH // 4, SIZE))


class Custom(keras.Model):
    """With a train_step of its own, written as Keras' guide does."""

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss}


def network(kind=keras.Model, dtype="float64"):
    """Deep enough to have something to recompute, and quickly compiled."""
    keras.utils.set_random_seed(1)
    inputs = x = keras.Input((SIZE,), dtype="float32" if "mixed" in dtype else dtype)
    for _ in range(8):
        x = keras.layers.Dense(SIZE, "tanh", dtype=dtype)(x)
    return kind(inputs, x)


def fit(model, **options):
    """Two epochs of three batches, of which the last is smaller."""
    model.fit(ROWS, ROWS, batch_size=BATCH, epochs=2, shuffle=False, verbose=0, **options)


def sgd(**options):
    return keras.optimizers.SGD(0.1, momentum=0.9, **options)


def compiled(model, optimizer, **options):
    model.compile(optimizer, "mse", **COMPILED, **options)
    # In a trace their initial values would hang on a truth value, of which a GPU that is not there
    # has none.
    model.optimizer.build(model.trainable_variables)


def trained(model, optimizer, **options):
    compiled(model, optimizer, **options)
    fit(model)


def several_steps_at_once(model):
    trained(model, sgd(), steps_per_execution=3)


def evaluated_in_between(model):
    compiled(model, sgd())
    fit(model, validation_data=(ROWS, ROWS))
    model.evaluate(ROWS, ROWS, batch_size=2 * BATCH, verbose=0)
    model.predict(ROWS, batch_size=2 * BATCH, verbose=0)
    fit(model)


def compiled_again(model):
    trained(model, sgd())
    trained(model, keras.optimizers.Adam())


def unfrozen(model):
    for layer in model.layers[:5]:
        layer.trainable = False
    trained(model, sgd())
    for layer in model.layers:
        layer.trainable = True
    trained(model, sgd())


def gradients_accumulated(model):
    trained(model, sgd(gradient_accumulation_steps=2))


def averaged(model):
    trained(model, sgd(use_ema=True, ema_momentum=0.9))


def clipped_by_their_norm(model):
    trained(model, keras.optimizers.AdamW(global_clipnorm=0.1))


def batch_by_batch(model):
    compiled(model, sgd())
    for _ in range(3):
        model.train_on_batch(ROWS[:BATCH], ROWS[:BATCH])


AROUND = [
    several_steps_at_once,
    evaluated_in_between,
    compiled_again,
    unfrozen,
    gradients_accumulated,
    averaged,
    clipped_by_their_norm,
    batch_by_batch,
]


def both(train, *args):
    """The variables of a model that trains as it is, and within a budget; and the latter."""
    models = []
    for budget in (None, 0.75):
        model = network(*args)
        if budget is not None:
            checkmate_tf.rematerialize(model, budget=budget, batch_size=BATCH, time_limit=2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            train(model)
        # On a GPU the arrays that are evaluated are held beside the steps that follow.
        assert set(codes(caught)) <= {"over-budget-planned-again"}
        models.append(model)
    plain, ours = ([np.asarray(each) for each in model.variables] for model in models)
    return plain, ours, models[1]


def is_planned_for_xla(model):
    plan = model.train_step.plan
    return (
        bool(model.jit_compile)
        and len(plan.schedule) > len(plan.graph)
        and plan.compiled_peak <= plan.budget < plan.compiled_baseline_peak
    )


@pytest.mark.parametrize("train", sweep(AROUND, quick=0))
def test_what_keras_does_around_it(train):
    plain, ours, model = both(train)
    assert is_planned_for_xla(model)
    if VALUES_ARE_REAL:
        for one, other in zip(plain, ours, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_a_train_step_of_the_users_own():
    plain, ours, model = both(lambda model: trained(model, sgd()), Custom)
    assert is_planned_for_xla(model)
    if VALUES_ARE_REAL:
        for one, other in zip(plain, ours, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision(policy):
    """Losses in float16 are scaled, and a step whose gradients overflow is left out."""
    before = keras.mixed_precision.dtype_policy()
    keras.mixed_precision.set_dtype_policy(policy)
    try:
        plain, ours, model = both(lambda model: trained(model, sgd()), keras.Model, policy)
    finally:
        keras.mixed_precision.set_dtype_policy(before)
    assert is_planned_for_xla(model)
    if VALUES_ARE_REAL:
        for one, other in zip(plain, ours, strict=True):
            np.testing.assert_allclose(one, other, rtol=0.05, atol=0.02)


def test_a_second_process_compiles_no_plan(monkeypatch, tmp_path):
    """In its place a second model, whose steps know nothing of the first one's."""
    monkeypatch.setenv(plan_store.VARIABLE, str(tmp_path))
    seconds = []
    for source in ("plan kept", "by a plan kept before"):
        model = network()
        checkmate_tf.rematerialize(model, budget=0.75, batch_size=BATCH, time_limit=2)
        with announces("plan-made", source):
            trained(model, sgd())
        assert is_planned_for_xla(model)
        seconds.append(model.train_step.plan.seconds)
    assert "compile" in seconds[0]
    assert "compile" not in seconds[1]


@pytest.mark.slow
@pytest.mark.parametrize("made_for_xla", [True, False])
def test_a_plan_that_is_named(made_for_xla, monkeypatch, tmp_path):
    monkeypatch.setenv(plan_store.VARIABLE, "off")
    model = network()
    checkmate_tf.rematerialize(model, budget=0.75, batch_size=BATCH, time_limit=2, order="fixed")
    model.compile(sgd(), "mse", jit_compile=made_for_xla)
    fit(model)
    made = model.train_step.plan
    made.save(tmp_path / "plan.json")
    model = network()
    checkmate_tf.rematerialize(
        model, budget="1GiB", plan=tmp_path / "plan.json", batch_size=BATCH, time_limit=2
    )
    trained(model, sgd())
    plan = model.train_step.plan
    assert plan.schedule == made.schedule
    assert plan.compiled_peak <= plan.budget
    assert ("compile" in plan.seconds) != made_for_xla


@pytest.mark.slow
def test_restored_it_trains_as_before():
    model = network()
    checkmate_tf.rematerialize(model, budget=0.75, batch_size=BATCH, time_limit=2)
    trained(model, sgd())
    assert checkmate_tf.restore(model).jit_compile
    fit(model)
    assert not hasattr(model.train_step, "plan")
