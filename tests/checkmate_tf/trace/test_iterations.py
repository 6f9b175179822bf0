"""How often a loop runs at most, beside how often it runs."""

from __future__ import annotations

import pytest
import tensorflow as tf

from checkmate_tf.trace.iterations import most_iterations
from checkmate_tf.trace.program import resolve

SPEC = tf.TensorSpec((4, 8))


def loops_of(function):
    graph = tf.function(function).get_concrete_function(SPEC).graph
    return [each for each in graph.get_operations() if each.type in ("While", "StatelessWhile")]


def counted(start, end, step, how):
    return lambda x: tf.while_loop(
        lambda i, n, y: how(i, end), lambda i, n, y: (i + step, n + 1, tf.sin(y)), (start, 0, x)
    )[1:]


@pytest.mark.parametrize("how", [tf.less, tf.less_equal])
@pytest.mark.parametrize(("start", "end", "step"), [(0, 3, 1), (1, 8, 2), (2, 9, 7), (5, 5, 1)])
def test_a_loop_that_counts(start, end, step, how):
    function = counted(start, end, step, how)
    (loop,) = loops_of(function)
    assert most_iterations(loop) == int(tf.function(function)(tf.zeros(SPEC.shape))[0])


def first_of_two(x):
    return tf.while_loop(
        lambda i, y: (tf.reduce_sum(y) > 0.0) & (i < 6), lambda i, y: (i + 1, 0.5 * y), (0, x)
    )


def a_range(x):
    for _ in tf.range(5):
        x = tf.sin(x)
    return x


def at_most(x):
    return tf.while_loop(lambda y: True, lambda y: (tf.sin(y),), (x,), maximum_iterations=9)


@pytest.mark.parametrize(("function", "most"), [(first_of_two, 6), (a_range, 5), (at_most, 9)])
def test_a_bound(function, most):
    (loop,) = loops_of(function)
    assert most_iterations(loop) == most


def of_data(x):
    return tf.while_loop(lambda y: tf.reduce_sum(y) > 1.0, lambda y: (0.5 * y,), (x,))


def multiplied(x):
    return tf.while_loop(lambda i, y: i < 100, lambda i, y: (2 * i, tf.sin(y)), (1, x))


def end_moves(x):
    body = lambda i, n, y: (i + 1, n - 1, tf.sin(y))  # noqa: E731
    return tf.while_loop(lambda i, n, y: i < n, body, (0, 10, x))


@pytest.mark.parametrize("function", [of_data, multiplied, end_moves])
def test_what_nothing_tells(function):
    (loop,) = loops_of(function)
    assert most_iterations(loop) is None


def test_the_gradient_of_an_array_that_a_loop_reads():
    """It is a list with as many elements as the array; its size is that of the array."""

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            array = tf.TensorArray(tf.float32, size=4).unstack(x)
            body = lambda i, y: (i + 1, tf.tanh(y * array.read(i)))  # noqa: E731
            loss = tf.reduce_sum(tf.while_loop(lambda i, y: i < 4, body, (0, tf.ones(8)))[1])
        return tape.gradient(loss, x)

    program = resolve(tf.function(step).get_concrete_function(SPEC))
    assert not program.guessed
    *_, gradient = (
        number for number, each in enumerate(program.operations) if "While" in each.type
    )
    lists = [
        made.bytes
        for made, output in zip(
            program.produced[gradient], program.operations[gradient].outputs, strict=True
        )
        if output.dtype == tf.variant and made.bytes
    ]
    assert lists == [4 * 8 * 4]
