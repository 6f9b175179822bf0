"""Steps as people write them and call them: results are those of the step without the decorator.

Every test compares with the plain step: Keras' own `fit`, or `tf.function`.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

import checkmate_tf
from solvers import BudgetError, CheckmateError, Schedule
from tests.messages import codes, raises, warns

SIZE, BATCH = 64, 256

planned = functools.partial(checkmate_tf.rematerialize, budget=0.9, time_limit=1, trial_run=False)


def numbers(batch=BATCH, seed=0):
    return tf.constant(np.random.default_rng(seed).normal(size=(batch, SIZE)), tf.float32)


def weights():
    return tf.Variable(tf.random.stateless_normal((SIZE, SIZE), (1, 2)) / 8)


def network(x, kernel):
    for _ in range(8):
        x = tf.tanh(x @ kernel)
    return x


def loss_and_gradient(x, kernel):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(network(x, kernel) ** 2)
    return loss, tape.gradient(loss, kernel)


def same(ours, plain):
    ours, plain = (tf.nest.flatten(each, expand_composites=True) for each in (ours, plain))
    assert len(ours) == len(plain)
    for one, other in zip(ours, plain, strict=True):
        one, other = np.array(one), np.array(other)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5 * np.abs(other).max())


@tf.custom_gradient
def reversed_gradient(x):
    return tf.identity(x), lambda upstream: -upstream * tf.cos(x)


@pytest.mark.parametrize("outer", [tf.function, lambda function: function])
def test_a_gradient_through_a_step(outer):
    """As a gradient penalty is: the step itself differentiates, and a tape around it does too."""
    kernel = weights()

    def steepness(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            hidden = reversed_gradient(network(x, kernel))
            hidden += tf.stop_gradient(tf.sin(hidden))
            loss = tf.reduce_sum(network(hidden, kernel) ** 2)
        return tf.reduce_sum(tape.gradient(loss, x) ** 2)

    def gradients(step):
        def differentiated(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                penalty = step(x)
            return penalty, tape.gradient(penalty, [x, kernel], unconnected_gradients="zero")

        return outer(differentiated)

    step = planned(steepness)
    ours, plain = gradients(step), gradients(tf.function(steepness))
    with warns("under-a-tape"):
        same(ours(numbers()), plain(numbers()))
    same(step(numbers()), steepness(numbers()))
    assert step.plan is not None
    for seed in range(2):
        same(ours(numbers(seed=seed)), plain(numbers(seed=seed)))


class Slots:
    """An object without a dictionary."""

    __slots__ = ("__weakref__", "kernel")

    def __init__(self):
        self.kernel = weights()

    @planned
    def step(self, x):
        return loss_and_gradient(x, self.kernel)


def test_a_method_of_an_object_with_slots():
    one, other = Slots(), Slots()
    other.kernel.assign(2 * other.kernel)
    plain = tf.function(loss_and_gradient)
    for each in (one, other, one):
        same(each.step(numbers()), plain(numbers(), each.kernel))
    assert Slots.step.plan is not None


@dataclasses.dataclass
class Batch:
    """Which TensorFlow takes for no argument: it can't be hashed."""

    x: tf.Tensor


def test_an_object_whose_tensors_change():
    kernel, batch = weights(), Batch(numbers())
    step = planned(lambda batch: loss_and_gradient(batch.x, kernel))
    plain = tf.function(loss_and_gradient)

    def train(count):
        for seed in range(count):
            batch.x = numbers(seed=seed)
            same(step(batch), plain(batch.x, kernel))

    with warns("retraced-often", "'batch'"):
        train(4)


@pytest.mark.parametrize("dtype", ["bfloat16", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_a_variable_of_any_type_that_the_step_writes(dtype, shape):
    kernel = weights()
    written = tf.Variable(tf.cast(tf.zeros(shape), dtype), trainable=False)

    def step(x):
        written.assign(tf.cast(tf.ones(shape), dtype))
        return loss_and_gradient(x, kernel)

    same(planned(step, trial_run=True)(numbers()), loss_and_gradient(numbers(), kernel))
    assert np.all(tf.cast(written, tf.float32) == 1)


def test_a_class_method():
    class Parent:
        kernel = weights()

        @classmethod
        @planned
        def train(cls, x):
            return loss_and_gradient(x, cls.kernel)

    class Child(Parent):
        kernel = tf.Variable(2 * Parent.kernel)

    plain = tf.function(loss_and_gradient)
    for kind in (Parent, Child, Parent):
        same(kind.train(numbers()), plain(numbers(), kind.kernel))
        same(kind().train(numbers()), plain(numbers(), kind.kernel))
    assert Child.train.plan is not None
    with raises(CheckmateError, "not-a-step", "@classmethod above"):
        planned(classmethod(loss_and_gradient))


def test_a_method_that_is_decorated_again_and_again():
    """As when a cell of a notebook runs again; the freed step's id is given to the next."""

    class Model:
        kernel = weights()

    model = Model()
    for number in range(6):

        def step(self, x, number=number):
            return loss_and_gradient(x, self.kernel)[0] + number

        Model.step = planned(step)
        del step
        expected = loss_and_gradient(numbers(), model.kernel)[0] + number
        same(model.step(numbers()), expected)
        Model.step = None


def test_a_weight_vector_among_the_arguments_has_no_batch():
    """Only what is as long as the batch is taken to be one of its kind."""
    kernel = weights()

    def step(x, classes, mixing):
        return loss_and_gradient((x * classes) @ mixing, kernel)

    ours, plain = planned(step, batch_size=BATCH), tf.function(step)
    for batch in (BATCH, 100, SIZE, BATCH):
        arguments = numbers(batch), tf.ones(SIZE), tf.eye(SIZE)
        same(ours(*arguments), plain(*arguments))
    assert ours.plan is not None


def test_what_is_not_a_batch_may_come_first():
    kernel = weights()

    def step(mixing, x):
        return loss_and_gradient(x @ mixing, kernel)

    ours, plain = planned(step, batch_size=BATCH), tf.function(step)
    for batch in (BATCH, 100, BATCH):
        same(ours(tf.eye(SIZE), numbers(batch)), plain(tf.eye(SIZE), numbers(batch)))
    assert ours.plan is not None


def class_weighted(kernel):
    last = tf.Variable(tf.random.stateless_normal((SIZE, 10), (3, 4)) / 8)

    def step(class_weights, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((network(x, kernel) @ last * class_weights) ** 2)
        return loss, tape.gradient(loss, [kernel, last])

    return step


SIGNATURE = [tf.TensorSpec((None,)), tf.TensorSpec((None, SIZE))]


@pytest.mark.parametrize("signature", [None, SIGNATURE])
def test_what_carries_no_batch_keeps_its_size(signature, recwarn):
    """Though it comes first, and once is as long as the batch."""
    plain = tf.function(class_weighted(weights()), input_signature=signature)
    ours = planned(plain, batch_size=BATCH)
    class_weights = [0.5] * 10 if signature else tf.fill([10], 0.5)
    for batch in (BATCH, 100, 10):
        same(ours(class_weights, numbers(batch)), plain(class_weights, numbers(batch)))
    assert ours.plan is not None
    assert "traced-size-by-size" not in codes(recwarn)


def test_what_carries_no_batch_needs_a_known_size_in_a_larger_function():
    step = planned(class_weighted(weights()), batch_size=BATCH)
    outer = tf.function(step, input_signature=SIGNATURE, autograph=False)
    with raises(CheckmateError, "batch-refused", 256):
        outer(tf.ones(10), numbers())


def test_code_that_asks_for_the_batch_size():
    """In Python, where a trace for batches of any size has none."""
    kernel = weights()

    def step(x):
        return loss_and_gradient(x + tf.ones((x.shape[0], SIZE)), kernel)

    ours, plain = planned(step, batch_size=BATCH), tf.function(step)
    with warns("traced-size-by-size"):
        ours(numbers())
    for batch in (BATCH, 100, BATCH):
        same(ours(numbers(batch)), plain(numbers(batch)))
    assert ours.plan is not None


@pytest.mark.parametrize(
    "options",
    [{"reduce_retracing": True}, {"input_signature": [tf.TensorSpec((None, SIZE))]}],
)
def test_a_function_that_is_traced_for_any_batch(options):
    kernel = weights()
    plain = tf.function(lambda x: loss_and_gradient(x, kernel), **options)
    ours = planned(plain)
    for batch in (100, 50, 25, BATCH, 75):
        same(ours(numbers(batch)), plain(numbers(batch)))
    assert ours.plan is not None


def test_a_solver_that_finds_nothing_where_there_is_something():
    kernel = weights()
    step = planned(lambda x: loss_and_gradient(x, kernel), budget=0.7, solver="checkpoint_all")
    with raises(BudgetError, "solver-found-nothing", "'checkpoint_all'"):
        step(numbers())


def test_a_loop_that_made_up_inputs_keep_running(monkeypatch):
    """Made-up whole numbers are zeros, by which this loop gets nowhere."""
    monkeypatch.setattr("checkmate_tf.planning.trial.trial_run.TRIAL_SECONDS", 0.5)
    kernel = weights()

    def step(x, stride):
        place = tf.constant(0)
        while place < 10:
            place += stride[0]
        return loss_and_gradient(x, kernel), place

    ours = planned(step, trial_run=True)
    arguments = numbers(), tf.constant([3])
    same(ours(*arguments), tf.function(step)(*arguments))
    if checkmate_tf.devices.measure.held_bytes() is not None:  # else there is no trial run
        assert any("a run on made-up inputs took over 0.5 s" in each for each in ours.plan.notes)


def test_many_plans_are_no_retracing(caplog):
    """TensorFlow counts traces by the code of a function, which all plans share."""
    kernel = weights()
    step = tf.function(lambda x: loss_and_gradient(x, kernel))
    for batch in range(100, 106):
        concrete = step.get_concrete_function(numbers(batch))
        order = Schedule(range(len(checkmate_tf.extract(concrete))))
        same(checkmate_tf.rewrite(concrete, order)(numbers(batch)), concrete(numbers(batch)))
    assert not [each for each in caplog.messages if "as_function" in each]


def test_numbers_that_are_checked():
    """Checks lie beside the values that they look at, and still find what is no number."""
    kernel = weights()
    tf.debugging.enable_check_numerics()
    try:
        ours = checkmate_tf.rematerialize(
            lambda x: loss_and_gradient(x, kernel), budget=0.6, time_limit=1, trial_run=False
        )
        plain = tf.function(lambda x: loss_and_gradient(x, kernel))
        same(ours(numbers()), plain(numbers()))
        assert len(ours.plan.schedule) > len(ours.plan.graph)
        assert not [each for each in ours.plan.notes if "depends on data" in each]
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"[Nn]a[Nn]"):
            ours(numbers() * np.nan)
    finally:
        tf.debugging.disable_check_numerics()
