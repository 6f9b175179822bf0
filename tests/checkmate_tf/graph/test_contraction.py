"""Operations become one node where cutting them apart could never help, and only there."""

from __future__ import annotations

import pytest
import tensorflow as tf

from checkmate_tf.graph.contraction import group_operations
from checkmate_tf.trace.program import resolve
from tests.steps import random_batch, small_cnn

SIDE = 256
MATRIX = tf.TensorSpec((SIDE, SIDE))


def program_of(step, *specs):
    return resolve(tf.function(step, autograph=False).get_concrete_function(*specs))


def kinds_of_groups(step, *specs):
    """The types of the operations of each group, in order."""
    program = program_of(step, *specs)
    return [[program.operations[m].type for m in each] for each in group_operations(program)]


@pytest.fixture(scope="module")
def program():
    model = small_cnn()
    return resolve(tf.function(model.train_step).get_concrete_function(random_batch()))


def test_every_operation_is_in_one_group_and_after_what_it_waits_for(program):
    ran = [member for members in group_operations(program) for member in members]
    assert sorted(ran) == list(range(len(program.operations)))
    place = {number: when for when, number in enumerate(ran)}
    for number, reads in enumerate(program.reads):
        before = {tensor.producer for tensor in reads} | program.order[number]
        assert all(place[other] < place[number] for other in before)


def test_the_step_gets_fewer_nodes_than_operations(program):
    assert 3 * len(group_operations(program)) < 2 * len(program.operations)


def test_gradients_of_filter_and_bias_are_one_node(program):
    """oneDNN makes one kernel of both; six convolutions have a bias."""
    groups = [{program.operations[m].type for m in each} for each in group_operations(program)]
    assert sum({"Conv2DBackpropFilter", "BiasAddGrad"} <= each for each in groups) == 6


def test_what_is_written_into_the_same_buffer_is_one_node():
    groups = kinds_of_groups(lambda x: tf.exp(tf.tanh(tf.sin(x))), MATRIX)
    assert groups == [["Sin", "Tanh", "Exp"]]


def test_what_two_groups_read_stays_by_itself():
    """The sine may be kept or recomputed for its second reader."""

    def step(x):
        y = tf.sin(x)
        return tf.linalg.matmul(y, tf.exp(y @ y))

    groups = kinds_of_groups(step, MATRIX)
    assert ["Sin"] in groups


def test_what_is_returned_stays_by_itself():
    def step(x):
        y = tf.sin(x)
        return y, tf.exp(y)

    assert kinds_of_groups(step, MATRIX) == [["Sin"], ["Exp"]]


def test_a_small_result_does_not_join_a_reader_that_leaves_more():
    """Keeping the sums, a row, costs less than keeping the matrix that is made of them."""

    def step(x):
        return tf.repeat(tf.reduce_sum(x, 0, keepdims=True), SIDE, 0) @ x

    (sums,) = (each for each in kinds_of_groups(step, MATRIX) if "Sum" in each)
    assert sums == ["Sum"]


def test_a_large_result_joins_a_reader_that_leaves_little():
    """Nobody would keep the matrix rather than its sum."""
    assert kinds_of_groups(lambda x: tf.reduce_sum(tf.sin(x)), MATRIX) == [["Sin", "Sum"]]


def test_what_runs_once_joins_nothing_that_may_be_recomputed():
    def step(x):
        return tf.exp(tf.random.uniform((SIDE, SIDE)) + x)

    groups = kinds_of_groups(step, MATRIX)
    (drawn,) = (each for each in groups if "RandomUniform" in each)
    assert "Exp" not in drawn


def test_no_group_waits_for_itself():
    """The sum alone reads the sine, but the product comes between: after one, before the other."""

    def step(x):
        sine = tf.sin(x)
        with tf.control_dependencies([sine]):
            product = x @ x
        return sine + product, product

    assert kinds_of_groups(step, MATRIX) == [["Sin"], ["MatMul"], ["AddV2"]]
