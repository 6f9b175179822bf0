"""An error about a budget names the loop that can't be planned part by part."""

from __future__ import annotations

import tensorflow as tf

from checkmate_tf import BudgetError, rematerialize
from tests.messages import raises


def step(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(tf.sin(x))
        body = lambda i, z: (i + 1, tf.exp(tf.sin(z)))  # noqa: E731
        y = tf.while_loop(lambda i, z: i < 16, body, (0, y))[1]
        loss = tf.reduce_sum(tf.sin(y) * y)
    return tape.gradient(loss, x)


def test_the_loop_is_named():
    small = rematerialize(step, budget=0.2, time_limit=1, trial_run=False)
    with raises(BudgetError, "budget-too-small", "'while'", "several loops"):
        small(tf.ones((512, 512)))
