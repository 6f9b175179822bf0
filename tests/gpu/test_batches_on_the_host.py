"""Custom loops over a `tf.data` set, whose batches lie on the host when the step is called."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

import checkmate_tf
from checkmate_tf.devices.measure import run_measured

DEVICE = "GPU:0"


def test_a_step_holds_what_it_held_when_it_was_tried():
    """Constants among it: the gradient of a mean is one, as large as a batch."""
    weights = [tf.Variable(tf.eye(64) / 8) for _ in range(5)]

    @checkmate_tf.rematerialize(budget="min", time_limit=0.5)
    def step(x):
        with tf.GradientTape() as tape:
            for each in weights:
                x = tf.tanh(x @ each) + x
            loss = tf.reduce_mean(tf.abs(x))
        for variable, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            variable.assign_sub(0.1 * gradient)
        return loss

    images = np.zeros((4 * 8192, 64), np.float32)
    batches = tf.data.Dataset.from_tensor_slices(images).batch(8192, drop_remainder=True)
    peaks = [run_measured(step, each, device=DEVICE)[1] for each in batches]
    assert step.plan.measured_peak is not None
    assert max(peaks[1:]) <= step.plan.budget  # during the first one it is planned
