"""Sources, views, hazards: what a traced step resolves to."""

from __future__ import annotations

import pytest
import tensorflow as tf

from checkmate_tf.trace.program import resolve
from solvers import CheckmateError
from tests.messages import raises
from tests.steps import small_cnn


def types(program):
    return [op.type for op in program.operations]


def test_views_are_resolved_to_what_lies_under_them():
    @tf.function(input_signature=[tf.TensorSpec((4, 6))])
    def step(x):
        return tf.exp(tf.reshape(tf.identity(tf.sin(x)), (24,)))

    program = resolve(step.get_concrete_function())
    assert types(program) == ["Sin", "Exp"]
    (read,) = program.reads[1]
    assert (read.producer, read.bytes) == (0, 96)


def test_unneeded_operations_are_left_out():
    @tf.function(input_signature=[tf.TensorSpec((4,))])
    def step(x):
        tf.cos(x)
        return tf.sin(x)

    assert types(resolve(step.get_concrete_function())) == ["Sin"]


def test_fixed_bytes_count_each_variable_once():
    w = tf.Variable(tf.ones((8, 8)))

    @tf.function(input_signature=[tf.TensorSpec((2, 8))])
    def step(x):
        return x @ w + x @ tf.transpose(w)

    program = resolve(step.get_concrete_function())
    transpose_permutation = 2 * 4
    assert program.fixed_bytes == 8 * 8 * 4 + 2 * 8 * 4 + transpose_permutation


def test_a_write_waits_for_readers_and_expires_them():
    w = tf.Variable(tf.ones((8, 8)))

    @tf.function(input_signature=[tf.TensorSpec((8, 8))])
    def step(x):
        y = x @ w
        w.assign_add(x)
        return y @ w

    program = resolve(step.get_concrete_function())
    first, write, second = 0, types(program).index("AssignAddVariableOp"), len(types(program)) - 1
    assert types(program)[second] == "MatMul"
    assert first in program.order[write]
    assert write in program.expires[first]
    assert write in program.order[second]
    assert write not in program.expires[second]


def test_a_value_used_after_its_variable_changed_is_a_snapshot():
    w = tf.Variable(tf.ones((8, 8)))

    @tf.function(input_signature=[tf.TensorSpec((8, 8))])
    def step(x):
        old = w.read_value()
        w.assign_add(x)
        return tf.sin(old)

    concrete = step.get_concrete_function()
    assert "ReadVariableOp" in types(resolve(concrete))


def test_sizes_come_from_the_batch_size():
    model = small_cnn()
    step = tf.function(model.train_step)
    data = (tf.TensorSpec((None, 32, 32, 3)), tf.TensorSpec((None,), tf.int32))
    dynamic = resolve(step.get_concrete_function(data), sizes=8)
    data = (tf.TensorSpec((8, 32, 32, 3)), tf.TensorSpec((8,), tf.int32))
    static = resolve(tf.function(model.train_step).get_concrete_function(data))
    assert not dynamic.guessed

    def convolutions(program):
        return sorted(
            tensor.bytes
            for op, made in zip(program.operations, program.produced, strict=True)
            if op.type.startswith("Conv2D")
            for tensor in made
        )

    assert convolutions(dynamic) == convolutions(static)


@pytest.mark.parametrize(
    ("shape", "batch_size", "named"),
    [((None, 4), None, "batch_size="), ((None, None), 8, "(None, None)")],
)
def test_unknown_shapes_are_an_error(shape, batch_size, named):
    step = tf.function(tf.sin, input_signature=[tf.TensorSpec(shape)])
    with raises(CheckmateError, "shape-unknown", named):
        resolve(step.get_concrete_function(), batch_size)
