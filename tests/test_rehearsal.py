"""A rehearsal measures, and leaves every variable as it was."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from checkmate_tf.extraction import extract_step
from checkmate_tf.rehearsal import Rehearsal, can_rehearse
from solvers import Schedule
from tests.steps import random_batch, small_cnn, snapshot


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


def test_a_step_that_prints_is_not_rehearsed():
    @tf.function(input_signature=[tf.TensorSpec((64,))])
    def step(x):
        tf.print("seen by the user")
        return tf.reduce_sum(tf.exp(x))

    assert not can_rehearse(extract_step(step.get_concrete_function()))
