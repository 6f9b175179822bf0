"""Errors of a rewritten step name the user's file and line, as those of the plain step do."""

from __future__ import annotations

import inspect
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

import checkmate_tf
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


class DivergedError(Exception):
    """An error of the user's, with more than a message."""

    def __init__(self, layer, *, code):
        super().__init__(layer)
        self.code = code


class Diverging(keras.Model):
    """Its training ends in that error."""

    def call(self, x):
        return x

    def train_step(self, data):
        raise DivergedError("dense", code=7)


def test_an_error_while_the_step_is_traced_is_the_users_own():
    """In `fit`, where Keras converts no code, and in a function, where TensorFlow does."""
    model = Diverging()
    model.compile("sgd", "mse", jit_compile=False)
    model = checkmate_tf.rematerialize(model, budget="50%", batch_size=4)
    with pytest.raises(DivergedError) as caught:
        model.fit(np.ones((4, 8)), np.ones((4, 8)), verbose=0)
    assert (caught.value.args, caught.value.code) == (("dense",), 7)

    def step(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        checkmate_tf.rematerialize(step, budget="50%")(tf.ones(4))


@pytest.mark.parametrize("outer", [lambda step: step, tf.function], ids=["eager", "outer"])
@pytest.mark.parametrize("function", [assertion, gather, reshape])
def test_a_run_time_error_names_the_users_line(function, outer):
    arguments = tf.ones((4, 8)), tf.constant([-1, 99])
    line = line_in(function)
    assert line in lines_named(tf.function(function), *arguments)
    assert line in lines_named(outer(rewritten(function)), *arguments)


def explicit_chain(x):
    try:
        raise KeyError("first")
    except KeyError as error:
        raise ValueError("second") from error


def implicit_chain(x):
    try:
        raise KeyError("first")
    except KeyError:
        raise ValueError("second")  # noqa: B904


def cut_chain(x):
    try:
        raise KeyError("first")
    except KeyError:
        raise ValueError("second") from None


@pytest.fixture
def all_lines_shown():
    """Else TensorFlow cuts the chain of every error that comes out of a tf.function."""
    tf.debugging.disable_traceback_filtering()
    yield
    tf.debugging.enable_traceback_filtering()


@pytest.mark.usefixtures("all_lines_shown")
@pytest.mark.parametrize("function", [explicit_chain, implicit_chain, cut_chain])
@pytest.mark.parametrize("autograph", [True, False])
def test_an_error_brings_the_errors_before_it_as_in_the_plain_step(function, autograph):
    def chain(step):
        with pytest.raises(ValueError, match="second") as caught:
            step(tf.ones(4))
        found, error = [], caught.value
        while error is not None:
            found.append((type(error), error.__cause__ is None, error.__suppress_context__))
            error = error.__cause__ or error.__context__
        return found

    plain = tf.function(function, autograph=autograph)
    assert KeyError in [kind for kind, *_ in chain(plain)]
    assert chain(checkmate_tf.rematerialize(plain, budget="50%")) == chain(plain)
