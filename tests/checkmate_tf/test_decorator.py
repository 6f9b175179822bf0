"""`rematerialize` as people use it: on Keras models, in fit, on free functions; and its errors."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.devices.measure import held_bytes
from solvers import BudgetError, CheckmateError, SolverError, format_bytes
from tests.messages import raises, warns
from tests.steps import small_cnn, snapshot, train_from


def deep_step(depth=12):
    """A free function that returns loss and gradient, and its plain form."""
    w = tf.Variable(tf.random.stateless_normal((256, 256), (3, 4)) / 16)

    def step(x):
        with tf.GradientTape() as tape:
            for _ in range(depth):
                x = tf.tanh(x @ w)
            loss = tf.reduce_sum(x)
        return loss, tape.gradient(loss, w)

    return step


LARGE = {"batch": 32, "side": 64}
"""Of images whose activations outweigh the workspaces of convolutions."""


def keeps_its_budget_or_says_so(plan):
    """What an allocator with a past wastes differs; a plan that may need more must say so."""
    notes = [each for each in plan.notes if "leanest plan found may need" in each]
    if plan.predicted_peak > plan.budget:
        return len(notes) == 1
    return True


def test_eager_train_step_trains_alike_within_the_budget():
    model = small_cnn(dropout=0.2, side=LARGE["side"])
    start = snapshot(model)
    step = checkmate_tf.rematerialize(model.train_step, budget=0.85, solver="linearized_greedy")
    ours = train_from(model, start, step, **LARGE)
    plain = train_from(model, start, tf.function(model.train_step), **LARGE)
    for ours_value, plain_value in zip(ours, plain, strict=True):
        np.testing.assert_allclose(ours_value, plain_value, rtol=2e-2, atol=2e-4)
    assert keeps_its_budget_or_says_so(step.plan)
    # The share is of what the unchanged step took, on a busy machine more than was forecast of it.
    assert step.plan.predicted_peak < step.plan.measured_baseline_peak


@pytest.mark.slow
def test_a_trial_run_leaves_no_trace():
    model = small_cnn(side=LARGE["side"])
    start = snapshot(model)
    step = checkmate_tf.rematerialize(model.train_step, budget=0.85, solver="linearized_greedy")
    ours = train_from(model, start, step, steps=1, **LARGE)
    assert step.plan.measured_peak is not None
    without_trial_run = checkmate_tf.rematerialize(
        model.train_step, budget=0.85, solver="linearized_greedy", trial_run=False
    )
    others = train_from(model, start, without_trial_run, steps=1, **LARGE)
    assert without_trial_run.plan.measured_peak is None
    for one, other in zip(ours, others, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-2, atol=2e-4)


class Decorated(keras.Model):
    """A model of its own class, with the decorator where a user puts it."""

    def __init__(self):
        super().__init__()
        self.hidden = [keras.layers.Dense(256, activation="tanh") for _ in range(8)]
        self.last = keras.layers.Dense(10)

    def call(self, x):
        for layer in self.hidden:
            x = layer(x)
        return self.last(x)

    @checkmate_tf.rematerialize(budget=0.8, batch_size=512, solver="linearized_greedy")
    def train_step(self, data):
        return super().train_step(data)


@pytest.mark.slow
def test_decorated_method_in_fit_with_batches_of_any_size():
    keras.utils.set_random_seed(0)
    model = Decorated()
    model.compile(
        optimizer="adam",
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=False,
    )
    generator = np.random.default_rng(0)
    images = generator.normal(size=(1300, 64)).astype("float32")
    labels = (images[:, 0] > 0).astype("int32")
    history = model.fit(images, labels, batch_size=512, epochs=4, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]
    assert model.train_step.plan.schedule is not None
    plan = model.train_step.plan
    assert keeps_its_budget_or_says_so(plan)


def test_two_models_of_one_class_have_plans_of_their_own():
    first, second = Decorated(), Decorated()
    assert first.train_step is first.train_step
    assert first.train_step is not second.train_step


def test_loss_and_gradients():
    plain = deep_step()
    step = checkmate_tf.rematerialize(plain, budget=0.7, solver="linearized_greedy")
    x = tf.random.stateless_normal((1024, 256), (1, 2))
    loss, gradient = step(x)
    expected_loss, expected_gradient = tf.function(plain)(x)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-4)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-3, atol=1e-3)
    text = str(step.plan)
    assert "budget" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.usefixtures("memory_in_one_piece")
def test_measured_peak_falls():
    """How far it falls is for benchmarks: the allocator of this process has a past."""
    plain = deep_step(depth=24)
    x = tf.random.stateless_normal((2048, 256), (1, 2))
    traced = tf.function(plain)
    traced(x)
    held = held_bytes()
    unchanged = checkmate_tf.measure_peak(traced, x) - held
    step = checkmate_tf.rematerialize(
        plain, budget=held + int(0.6 * unchanged), solver="linearized_greedy"
    )
    step(x)
    assert max(checkmate_tf.measure_peak(step, x) for _ in range(3)) - held < 0.9 * unchanged


def test_numpy_and_python_arguments():
    def step(x, factor, name="x"):
        return {name: tf.reduce_sum(tf.exp(x) * tf.exp(-x)) * factor}

    again = checkmate_tf.rematerialize(step, budget=1.0, solver="linearized_greedy")
    x = np.ones((512, 512), np.float32)
    assert float(again(x, 2.0)["x"]) == pytest.approx(2 * 512 * 512, rel=1e-4)
    assert float(again(x, 3.0, name="y")["y"]) == pytest.approx(3 * 512 * 512, rel=1e-4)


def test_inside_a_mirrored_strategy():
    devices = tf.config.list_logical_devices("CPU")
    strategy = tf.distribute.MirroredStrategy([device.name for device in devices])
    with strategy.scope():
        plain = deep_step()
    step = checkmate_tf.rematerialize(plain, budget=0.7, solver="linearized_greedy")
    x = tf.random.stateless_normal((512, 256), (1, 2))

    @tf.function
    def replicated(x):
        return strategy.run(step, args=(x,))

    loss, _ = replicated(x)
    assert float(strategy.reduce("SUM", loss, axis=None)) == pytest.approx(
        float(tf.function(plain)(x)[0]), rel=1e-3
    )


def test_too_small_a_budget_says_what_would_do():
    step = checkmate_tf.rematerialize(deep_step(), budget="1MB", time_limit=4)
    with raises(BudgetError, "budget-too-small") as caught:
        step(tf.ones((1024, 256)))
    least = caught.value.least
    assert least is not None
    assert format_bytes(least) in str(caught.value)
    # What else the process holds may have grown a little since.
    enough = int(least) + 4 * 2**20
    step = checkmate_tf.rematerialize(deep_step(), budget=enough, time_limit=8, trial_run=False)
    step(tf.ones((1024, 256)))
    assert keeps_its_budget_or_says_so(step.plan)


@pytest.mark.parametrize(
    ("budget", "code"),
    [
        ("4 bananas", "budget-not-a-size"),
        (0, "budget-not-positive"),
        (-1, "budget-not-positive"),
        (float("nan"), "budget-not-positive"),
        (True, "budget-not-a-size"),
        (1.5, "budget-share-above-one"),
        ("", "budget-not-a-size"),
    ],
)
def test_a_budget_that_is_no_size_fails_at_once(budget, code):
    with raises(BudgetError, code, repr(budget)):
        checkmate_tf.rematerialize(deep_step(), budget=budget)


def test_unknown_batch_size():
    step = tf.function(
        checkmate_tf.rematerialize(deep_step(), budget=0.5),
        input_signature=[tf.TensorSpec((None, 256))],
        autograph=False,  # it wraps errors in one of its own
    )
    with raises(CheckmateError, "shape-unknown", "batch_size="):
        step.get_concrete_function()


def test_nothing_to_rematerialize_runs_unchanged():
    step = checkmate_tf.rematerialize(lambda x: x + 1, budget=0.5)
    with warns("nothing-to-recompute"):
        assert float(step(tf.constant(1.0))) == 2
    assert step.plan is None


def test_unknown_names_list_the_known_ones():
    with raises(SolverError, "solver-unknown", "linearized_greedy"):
        checkmate_tf.rematerialize(deep_step(), budget=0.5, solver="simplex")
    with raises(CheckmateError, "cost-model-unknown", "roofline"):
        checkmate_tf.rematerialize(deep_step(), budget=0.5, costs="guess")


@pytest.mark.slow
def test_the_least_memory_as_a_budget():
    x = tf.ones((1024, 256))
    step = checkmate_tf.rematerialize(deep_step(), budget="min", time_limit=4, trial_run=False)
    plain = checkmate_tf.rematerialize(deep_step(), budget=1.0, time_limit=4, trial_run=False)
    assert float(step(x)[0]) == float(plain(x)[0])
    assert step.plan.predicted_peak < plain.plan.predicted_peak
    assert step.plan.solution.least_budget == step.plan.solution.peak
    assert step.plan.solution.provable_budget <= step.plan.solution.peak
