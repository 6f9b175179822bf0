"""A planned step computes where the plain one does, and copies no more than that does."""

from __future__ import annotations

from functools import partial

import keras
import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.program.rewrite import as_function
from checkmate_tf.workloads.models import gpt, residual, unet
from solvers import Schedule
from tests.costs import sweep
from tests.gpu.steps import (
    BATCH,
    GPU,
    Case,
    dense,
    fit,
    functions_begun,
    loop_step,
    nothing_is_said,
    rows,
)

OF_BUDGETS = "leanest-plan-over-budget", "over-budget-planned-again", "over-budget-plan-kept"
"""Codes of what is no matter here."""

_OPERATIONS = 300
"""Of each of these steps; what prepares one has fewer."""

STEPS = {
    "convolutions": Case(partial(residual, blocks=3), 32, 64),
    "pixels": Case(unet, 16, 64, "pixels"),
    "text": Case(partial(gpt, blocks=2), 16, 64, "text"),
}


def batches(case, count=3):
    """A data set: its batches lie in the memory of the host."""
    x, y = case.data(count * case.batch)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(case.batch, True).prefetch(2)


def test_a_mask_that_is_captured_lies_on_the_gpu():
    """Else every step would copy it there."""

    def causal(x):
        return tf.reduce_sum(tf.where(tf.linalg.band_part(tf.ones(x.shape), -1, 0) > 0, x, 0.0))

    concrete = tf.function(causal).get_concrete_function(tf.TensorSpec((2048, 2048)))
    extracted = extract_step(concrete)
    step = as_function(extracted, Schedule(range(len(extracted.graph))))
    (mask,) = step.captured_inputs
    assert mask.device.endswith(GPU)


@pytest.mark.parametrize("name", sweep(STEPS, quick=3))
def test_a_loop_over_a_data_set(name):
    """No function that planning tries and training runs copies more than the plain one."""
    case = STEPS[name]
    model = case.compiled()
    step = loop_step(model, model.optimizer, model.loss)
    plain = tf.function(step)
    with functions_begun(_OPERATIONS) as copied:
        expected = [plain(*batch) for batch in batches(case)]
    (allowed,) = copied
    ours = checkmate_tf.rematerialize(step, budget=0.75, time_limit=2)
    # So small a step may hold a little more than in its trial run.
    with nothing_is_said(*OF_BUDGETS), functions_begun(_OPERATIONS) as copied:
        losses = [ours(*batch) for batch in batches(case)]
    assert len(ours.plan.schedule) > len(ours.plan.graph)
    assert len(copied) >= 2  # the unchanged step's, and a plan's
    assert all(each <= allowed for each in copied), copied
    assert {each.device for each in losses} == {each.device for each in expected}
    assert_on_the_gpu(model)


def test_fit():
    """Its last batch is smaller; what looks for larger ones than were planned does so on the host.

    If the GPU did, each step would wait for it.
    """
    data = rows(2 * BATCH + 5)
    plain, model = dense(), dense()
    with functions_begun(100) as copied:
        fit(plain, *data, BATCH)
    (allowed,) = set(map(leaving_the_gpu, copied))
    checkmate_tf.rematerialize(model, budget=0.75, time_limit=2)
    with nothing_is_said(*OF_BUDGETS), functions_begun(100) as copied:
        fit(model, *data, BATCH)
    assert len(model.train_step.plan.schedule) > len(model.train_step.plan.graph)
    assert {leaving_the_gpu(each) for each in copied} == {allowed}, copied
    assert_on_the_gpu(model)


def leaving_the_gpu(copied):
    """How many arrays leave a GPU; sizes, which are int32, never were in its memory."""
    places = [each for each in copied if each[1].startswith("GPU") and each[0] != "int32"]
    return sum(copied[each] for each in places)


def test_what_belongs_to_the_host_stays_there():
    """A step that says of a part of it that the CPU computes it."""
    w = tf.Variable(tf.zeros((256, 256)))

    def step(x):
        with tf.GradientTape() as tape:
            for _ in range(6):
                x = tf.tanh(x @ w)
            with tf.device("CPU:0"):
                x = tf.sin(x)
            loss = tf.reduce_sum(x @ w)
        return loss, tape.gradient(loss, w)

    x = tf.zeros((4096, 256))
    with functions_begun(20) as copied:
        plain = tf.function(step)(x)
    (allowed,) = copied
    ours = checkmate_tf.rematerialize(step, budget=0.75, time_limit=2)
    with nothing_is_said(*OF_BUDGETS), functions_begun(20) as copied:
        results = ours(x)
    assert leaving_the_gpu(allowed) >= 1
    # A plan may compute that part twice, and then copies for it twice.
    assert all(leaving_the_gpu(each) >= 1 for each in copied), copied
    assert all(set(each) <= set(allowed) for each in copied), copied
    assert [each.device for each in results] == [each.device for each in plain]


def test_a_step_on_the_cpu_beside_a_gpu():
    """Under a scope for the CPU nothing of a step goes to the GPU."""
    with tf.device("CPU:0"):
        model = keras.Sequential([keras.layers.Dense(64, "tanh") for _ in range(6)])
        model.build((None, 64))
        step = loop_step(model, keras.optimizers.SGD(0.1, 0.9), keras.losses.MeanSquaredError())
        ours = checkmate_tf.rematerialize(step, budget=0.75, time_limit=2)
        x = tf.zeros((256, 64))
        with functions_begun(60) as copied:
            loss = ours(x, x)
    assert copied
    assert not any(copied)
    assert loss.device.endswith("CPU:0")


def assert_on_the_gpu(model):
    """All floating-point variables; small integers, as counters, may lie on either side."""
    held = [*model.trainable_variables, *model.optimizer.variables]
    places = {each.value.device for each in held if "float" in each.dtype}
    assert len(places) == 1
    assert places.pop().endswith("GPU:0")
