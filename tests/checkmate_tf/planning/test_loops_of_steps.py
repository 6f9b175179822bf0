"""A step of which nothing can be planned: the warning says what to decorate instead."""

from __future__ import annotations

import tensorflow as tf

from checkmate_tf import BudgetError, rematerialize
from tests.dense_steps import QUICK, SIZE, loss_and_gradient, some_weights
from tests.messages import raises, warns

BATCH = 512


def one_step(kernel):
    whole = loss_and_gradient(kernel)

    def step(x):
        loss, gradient = whole(x)
        kernel.assign_sub(1e-5 * gradient)
        return loss

    return step


def images(draw_as="tensor"):
    x = tf.random.stateless_normal((4 * BATCH, SIZE), (1, 2))
    data = tf.data.Dataset.from_tensor_slices(x)
    return x if draw_as == "tensor" else data.batch(BATCH, drop_remainder=True)


def test_a_loop_of_steps():
    once = one_step(some_weights())

    def epoch(x):
        total = 0.0
        for number in tf.range(4):
            total += once(tf.ensure_shape(x[BATCH * number :][:BATCH], (BATCH, SIZE)))
        return total

    with warns("nothing-to-recompute", "'epoch'", "(While"):
        rematerialize(epoch, **QUICK)(images())


def test_a_data_set_inside():
    once, data = one_step(some_weights()), images("data")

    def epoch():
        total = 0.0
        for x in data:
            total += once(x)
        return total

    with warns("nothing-to-recompute", "Dataset"):
        rematerialize(epoch, **QUICK)()


def test_what_is_called_in_a_loop_is_planned():
    """As the warning says."""

    def trained(decorate):
        kernel = some_weights()
        once = decorate(one_step(kernel))

        @tf.function
        def epoch(x):
            total = 0.0
            for number in tf.range(4):
                total += once(tf.ensure_shape(x[BATCH * number :][:BATCH], (BATCH, SIZE)))
            return total

        return epoch(images()), kernel, once

    total, kernel, once = trained(lambda step: rematerialize(step, **QUICK))
    plain_total, plain_kernel, _ = trained(lambda step: step)
    assert once.plan is not None
    tf.debugging.assert_near(total, plain_total, rtol=1e-3)
    tf.debugging.assert_near(kernel, plain_kernel, rtol=1e-4, atol=1e-5)


def test_a_function_without_a_gradient():
    kernel = some_weights()

    def forward(x):
        return tf.reduce_sum(tf.tanh(x @ kernel))

    with warns("nothing-to-recompute", "'forward'", "gradient"):
        rematerialize(forward, **QUICK)(images())


def test_a_branch_that_is_all_of_the_step():
    kernel = some_weights()

    def step(x):
        def deep():
            return tf.reduce_sum(tf.tanh(tf.tanh(x @ kernel) @ kernel))

        with tf.GradientTape() as tape:
            loss = tf.cond(x[0, 0] > 0, deep, lambda: tf.reduce_sum(x @ kernel))
        return tape.gradient(loss, kernel)

    with warns("nothing-to-recompute", "'step'", "If", "docs/memory.md"):
        rematerialize(step, **QUICK)(images())


def test_a_loop_of_steps_beside_other_work():
    """Here something can be recomputed, but not what needs the memory."""
    kernel = some_weights()
    once = one_step(kernel)

    def steps(x):
        x = tf.sin(tf.sin(x))
        total = tf.reduce_sum(x)
        for number in tf.range(2):
            total += once(tf.concat([x, x, x, x], axis=0) + tf.cast(number, tf.float32))
        return total + tf.reduce_sum(x)

    step = rematerialize(steps, **{**QUICK, "budget": 0.1})
    with raises(BudgetError, "budget-too-small", "decorate the function"):
        step(images())
