"""What callers give a function, and what can't run before it is there."""

from __future__ import annotations

import tensorflow as tf

from checkmate_tf.trace.inputs import argument_placeholders, waiting_for_arguments
from tests.steps import SPEC


def test_what_waits_for_arguments():
    count, weights = tf.Variable(0.0), tf.Variable(tf.ones((SPEC.shape[-1],)))

    @tf.function
    def step(x):
        rate = tf.divide(1.0, count.assign_add(1.0), name="rate")
        scaled = tf.multiply(tf.exp(x), rate, name="scaled")
        weights.assign_sub(tf.multiply(rate, weights, name="decay"))
        with tf.control_dependencies([x]):
            after = tf.constant(2.0, name="after")
        return scaled * after, tf.reduce_sum(weights, name="sum")

    concrete = step.get_concrete_function(SPEC)
    operations = concrete.graph.get_operations()
    waiting = waiting_for_arguments(concrete, operations)
    assert [each.op.name for each in argument_placeholders(concrete)] == ["x"]
    known = {"x", "scaled", "after", "rate", "decay", "sum"}
    assert known & waiting == {"x", "scaled", "after"}
    named = {each.name: each for each in operations}
    assert known <= set(named)
    assert waiting_for_arguments(concrete, [named["rate"], named["scaled"]]) == {"scaled"}
