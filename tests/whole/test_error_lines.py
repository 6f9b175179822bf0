"""Errors of a rewritten step name the user's file and line, as those of the plain step do."""

from __future__ import annotations

import inspect
import re

import pytest
import tensorflow as tf

from checkmate_tf import extract, rewrite
from solvers import Schedule


def assertion(x, numbers):
    y = tf.exp(x)
    tf.debugging.assert_positive(numbers)  # the line
    return tf.reduce_sum(tf.sin(y) * tf.cos(y))


def gather(x, numbers):
    y = tf.exp(x)
    picked = tf.gather(y, numbers)  # the line
    return tf.reduce_sum(tf.sin(picked) * tf.cos(picked))


def reshape(x, numbers):
    y = tf.exp(x)
    picked = tf.reshape(y, numbers)  # the line
    return tf.reduce_sum(tf.sin(picked) * tf.cos(picked))


def line_in(function):
    lines, first = inspect.getsourcelines(function)
    return first + next(place for place, line in enumerate(lines) if "# the line" in line)


def lines_named(function, *arguments):
    """The lines of this file that the error of `function(*arguments)` names."""
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        function(*arguments)
    assert "Detected at node" in caught.value.message
    named = re.findall(r'File "(.*)", line (\d+)', caught.value.message)
    return {int(line) for file, line in named if file == __file__}


def rewritten(function):
    """`function`, every operation of which is computed twice where it can be."""
    specs = tf.TensorSpec((4, 8)), tf.TensorSpec((2,), tf.int32)
    concrete = tf.function(function).get_concrete_function(*specs)
    graph = extract(concrete)
    steps = []
    for number, node in enumerate(graph.nodes):
        steps += [number, number] if node.recomputable else [number]
    return rewrite(concrete, Schedule(steps))


@pytest.mark.parametrize("outer", [lambda step: step, tf.function], ids=["eager", "outer"])
@pytest.mark.parametrize("function", [assertion, gather, reshape])
def test_a_run_time_error_names_the_users_line(function, outer):
    arguments = tf.ones((4, 8)), tf.constant([-1, 99])
    line = line_in(function)
    assert line in lines_named(tf.function(function), *arguments)
    assert line in lines_named(outer(rewritten(function)), *arguments)
