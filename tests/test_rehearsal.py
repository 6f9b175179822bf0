"""A rehearsal measures, and leaves every variable as it was."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.extraction import extract_step
from checkmate_tf.measure import held_bytes
from checkmate_tf.rehearsal import Rehearsal, can_rehearse
from solvers import Schedule
from tests.steps import noisy_question, random_batch, small_cnn, snapshot


def test_variables_are_put_back_to_the_last_bit():
    model = small_cnn(dropout=0.3)
    extracted = extract_step(tf.function(model.train_step).get_concrete_function(random_batch()))
    assert can_rehearse(extracted)
    before = snapshot(model)
    rehearsal = Rehearsal(extracted)
    schedule = Schedule(range(len(extracted.graph)))
    peaks = rehearsal.peaks(schedule)
    assert len(peaks) > 1
    assert min(peaks) > extracted.program.fixed_bytes
    for old, new in zip(before, snapshot(model), strict=True):
        assert np.array_equal(old, new)
    assert rehearsal.function(schedule) is not None
    assert rehearsal.function(Schedule([*schedule.steps, 0])) is None


def test_every_bit_is_put_back():
    """Also where arithmetic can't: minus zero, infinity, NaN; and in types of all kinds."""
    values = [
        np.array([1.5, -2.25e-30, 3e30, 0.1], np.float32),
        np.array([-0.0, 1.0], np.float32),
        np.array([np.inf, np.nan, -np.inf], np.float32),
        np.array([2**62 + 1, -3], np.int64),
        np.array([True, False]),
        np.array(0.3, np.float64),
    ]
    variables = [tf.Variable(each) for each in values]

    @tf.function(input_signature=[tf.TensorSpec((64, 64))])
    def step(x):
        for each in variables:
            if each.dtype == tf.bool:
                each.assign(tf.logical_not(each))
            else:
                each.assign_add(tf.ones_like(each))
        return tf.reduce_sum(tf.exp(x))

    extracted = extract_step(step.get_concrete_function())
    Rehearsal(extracted).peaks(Schedule(range(len(extracted.graph))))
    for variable, value in zip(variables, values, strict=True):
        assert variable.numpy().tobytes() == value.tobytes()


def test_random_numbers_are_not_used_up():
    """Operations that draw from their kernel's generator give what they give the plain step."""
    noisy, x, expected = noisy_question()
    step = checkmate_tf.rematerialize(noisy, budget=0.8, time_limit=4)
    losses = [step(x)[0].numpy() for _ in range(3)]
    if held_bytes() is not None:
        assert step.plan.measured_peak is not None
    assert len(set(expected)) == 3
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


def test_a_step_that_refuses_made_up_inputs_is_planned_by_the_forecast():
    @tf.function
    def step(x, positive):
        tf.debugging.Assert(tf.reduce_all(positive > 0), ["only positive ones"])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(6):
                y = tf.tanh(y @ tf.ones((128, 128)))
            loss = tf.reduce_sum(y)
        return loss, tape.gradient(loss, x)

    labels = tf.ones((8,), tf.int32)
    rematerialized = checkmate_tf.rematerialize(step, budget=0.9, time_limit=4)
    loss, _ = rematerialized(tf.ones((512, 128)), labels)
    assert np.isfinite(loss.numpy())
    assert rematerialized.plan.measured_peak is None
    if held_bytes() is not None:
        assert any("made-up inputs" in note for note in rematerialized.plan.notes)
    with pytest.raises(tf.errors.InvalidArgumentError):
        rematerialized(tf.ones((512, 128)), 0 * labels)


def test_a_step_that_prints_is_not_rehearsed():
    @tf.function(input_signature=[tf.TensorSpec((64,))])
    def step(x):
        tf.print("seen by the user")
        return tf.reduce_sum(tf.exp(x))

    assert not can_rehearse(extract_step(step.get_concrete_function()))
