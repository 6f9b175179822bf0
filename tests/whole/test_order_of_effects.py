"""What a step writes, checks and waits for happens in the order in which the plain step does it.

Every value is recomputed before each of its readers, and nobody looks for a good plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf import extract
from checkmate_tf.devices.cpu import Cpu
from checkmate_tf.devices.current import planned_as
from checkmate_tf.devices.device import Device
from checkmate_tf.program.rewrite import rewrite
from solvers import Schedule
from tests.steps import recomputing

SIZE, BATCH = 16, 64
X = tf.random.stateless_normal((BATCH, SIZE), (1, 2), dtype=tf.float64)
BAD = X * np.nan
RATE = tf.constant(0.25, tf.float64)

Step = Callable[..., Any]


def variable(seed: int, *shape: int, trainable: bool = False) -> tf.Variable:
    values = tf.random.stateless_normal(shape, (3, seed), dtype=tf.float64)
    return tf.Variable(values, trainable=trainable)


def weights() -> list[tf.Variable]:
    return [variable(seed, SIZE, SIZE, trainable=True) for seed in range(6)]


def network(x: Any, kernels: Sequence[tf.Variable]) -> Any:
    for kernel in kernels:
        x = tf.tanh(x @ kernel / SIZE**0.5)
    return x


def train(kernels: Sequence[tf.Variable], loss_of: Step, change: Step = lambda each: each) -> Any:
    """One step of gradient descent; the gradients are changed before."""
    with tf.GradientTape() as tape:
        loss = loss_of()
    for kernel, gradient in zip(kernels, change(tape.gradient(loss, kernels)), strict=True):
        kernel.assign_sub(0.1 * gradient)
    return loss


def a_table_that_is_written_after_it_was_looked_up() -> Step:
    kernels, table = weights(), variable(7, 8, SIZE)

    def step(x: Any, _: Any) -> Any:
        def loss() -> Any:
            found = network(x, kernels[:3]) + tf.gather(table, tf.range(BATCH) % 8)
            table.assign(table * 0.9)
            return tf.reduce_mean(network(found, kernels[3:]) ** 2)

        return train(kernels, loss)

    return step


def a_variable_that_is_written_after_a_loop_has_read_it() -> Step:
    kernels, shift = weights(), variable(7, 1, SIZE)

    def step(x: Any, _: Any) -> Any:
        def loss() -> Any:
            _, y = tf.while_loop(
                lambda i, y: i < 3,
                lambda i, y: (i + 1, tf.sin(y) + shift),
                (0, network(x, kernels[:3])),
            )
            shift.assign(shift * 0.9)
            return tf.reduce_mean(network(y * y, kernels[3:]) ** 2)

        return train(kernels, loss)

    return step


def a_variable_that_is_written_after_a_branch_has_read_it() -> Step:
    kernels, shift = weights(), variable(7, 1, SIZE)

    def step(x: Any, _: Any) -> Any:
        def loss() -> Any:
            y = network(x, kernels[:3])
            y += tf.cond(tf.reduce_sum(y) > 1e9, lambda: tf.zeros_like(y), lambda: y * shift)
            shift.assign(shift * 0.9)
            return tf.reduce_mean(network(y * y, kernels[3:]) ** 2)

        return train(kernels, loss)

    return step


def a_counter_that_is_read_with_an_argument_before_it_counts() -> Step:
    kernels, count = weights(), tf.Variable(0.0, dtype=tf.float64)

    def step(x: Any, rate: Any) -> Any:
        share = tf.minimum(tf.constant(1.0, tf.float64), count * rate)
        count.assign_add(1.0)
        loss = train(kernels, lambda: (1 + share) * tf.reduce_mean(network(x, kernels) ** 2))
        return loss, share

    return step


def guarded(change: Step) -> Step:
    kernels = weights()

    def checked(gradients: Sequence[Any]) -> list[Any]:
        finite = tf.reduce_all(tf.math.is_finite(gradients[0]))
        with tf.control_dependencies([tf.debugging.Assert(finite, ["not finite"])]):
            return [change(each) for each in gradients]

    def step(x: Any, _: Any) -> Any:
        return train(kernels, lambda: tf.reduce_mean(network(x, kernels) ** 2), checked)

    return step


def gradients_behind_a_check() -> Step:
    return guarded(tf.identity)


def gradients_behind_a_check_in_a_function() -> Step:
    return guarded(tf.function(lambda each: tf.clip_by_value(each, -1.0, 1.0)))


def a_read_behind_python_code_that_writes() -> Step:
    kernels, count = weights(), tf.Variable(1.0)

    def step(x: Any, _: Any) -> Any:
        loss = train(kernels, lambda: tf.reduce_mean(network(x, kernels) ** 2))
        write = tf.py_function(lambda: count.assign(count * 2.0), [], tf.float32)
        with tf.control_dependencies([write]):
            return loss, count.read_value() * 3.0, count.read_value()

    return step


def a_check_whose_result_nobody_reads() -> Step:
    kernels = weights()

    def step(x: Any, _: Any) -> Any:
        loss = train(kernels, lambda: tf.reduce_mean(network(x, kernels) ** 2))
        tf.debugging.assert_all_finite(loss, "the loss is not finite")
        return loss

    return step


def a_check_of_a_value_that_is_recomputed() -> Step:
    kernels = weights()

    def step(x: Any, _: Any) -> Any:
        def loss() -> Any:
            y = network(x, kernels[:3])
            tf.debugging.check_numerics(y, "not finite")
            return tf.reduce_mean(network(y * y, kernels[3:]) ** 2)

        return train(kernels, loss)

    return step


STEPS = (
    a_table_that_is_written_after_it_was_looked_up,
    a_variable_that_is_written_after_a_loop_has_read_it,
    a_variable_that_is_written_after_a_branch_has_read_it,
    a_counter_that_is_read_with_an_argument_before_it_counts,
    gradients_behind_a_check,
    gradients_behind_a_check_in_a_function,
    a_read_behind_python_code_that_writes,
    a_check_whose_result_nobody_reads,
    a_check_of_a_value_that_is_recomputed,
)


def results(step: Step, batches: Sequence[Any]) -> list[Any]:
    """What each call returns; None where a check fails."""
    found: list[Any] = []
    for batch in batches:
        try:
            found.append(tf.nest.map_structure(float, step(batch, RATE)))
        except tf.errors.InvalidArgumentError:
            found.append(None)
    return found


@pytest.mark.parametrize("in_turn", [True, False], ids=["in turn", "in groups"])
@pytest.mark.parametrize("make", STEPS, ids=lambda make: make.__name__)
def test_effects_come_in_the_order_of_the_plain_step(
    make: Callable[[], Step], in_turn: bool
) -> None:
    concrete = tf.function(make(), autograph=False).get_concrete_function(X, RATE)
    ours = rewrite(concrete, Schedule(recomputing(extract(concrete))))
    # Where gradients are checked, weights are as before and training goes on.
    batches = [X, BAD, X] if "behind_a_check" in make.__name__ else [X, X, X, BAD]
    with planned_as(Cpu("CPU:0") if in_turn else Device("GPU:0")):
        found = results(ours, batches)
    expected = results(tf.function(make(), autograph=False), batches)
    assert (None in expected) == ("check" in make.__name__)
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if other is not None:
            np.testing.assert_allclose(one, other, rtol=1e-12, equal_nan=True)
