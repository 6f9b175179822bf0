"""The graph that stands for a step at every batch size, beside the step at other sizes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf.batches.examples import example_batch
from checkmate_tf.batches.sized_step import GraphOfBatch, SizedStep, forward_cost, not_affine
from checkmate_tf.graph.extraction import extract_like, extract_program
from checkmate_tf.trace.program import resolve
from solvers import CheckmateError, Schedule, simulate
from tests.messages import raises
from tests.steps import small_cnn


@pytest.fixture(scope="module")
def traced():
    model = small_cnn(side=16)
    images, labels = tf.TensorSpec((None, 16, 16, 3)), tf.TensorSpec((None,), tf.int32)
    return tf.function(model.train_step).get_concrete_function((images, labels))


@pytest.fixture(scope="module")
def large(traced):
    return extract_program(resolve(traced, 32))


@pytest.fixture(scope="module")
def graph(traced, large):
    return GraphOfBatch((8, 32), (extract_like(large, resolve(traced, 8)).graph, large.graph))


@pytest.mark.parametrize("size", [5, 17, 41])
def test_sizes_at_other_batches_are_those_of_the_step(traced, large, graph, size):
    real = extract_like(large, resolve(traced, size)).graph
    told = graph.at(size)
    assert told.fixed_bytes == real.fixed_bytes
    assert [node.memory for node in told.nodes] == [node.memory for node in real.nodes]
    unchanged = Schedule(range(len(real)))
    peaks = [simulate(each, unchanged).peak for each in (told, real)]
    assert abs(peaks[0] - peaks[1]) <= 0.01 * peaks[1]  # inside nodes, maxima of affine sizes


def test_alike_is_the_same_as_anew_at_the_same_size(large):
    assert extract_like(large, large.program).graph == large.graph


def test_all_sizes_of_a_train_step_are_affine(traced):
    assert not_affine({size: resolve(traced, size) for size in (4, 9, 31)}) == []


def test_products_of_examples_with_examples_are_found():
    step = tf.function(lambda x: tf.reduce_sum(tf.exp(x @ tf.transpose(x))))
    concrete = step.get_concrete_function(tf.TensorSpec((None, 8)))
    odd = not_affine({size: resolve(concrete, size) for size in (4, 9, 31)})
    assert [operation.type for operation in odd] == ["MatMul", "Exp"]


def test_a_step_that_does_other_operations_is_no_other_size_of_it(large):
    other = tf.function(lambda x: tf.reduce_sum(x)).get_concrete_function(tf.TensorSpec((4,)))
    with raises(CheckmateError, "graph-depends-on-the-batch"):
        extract_like(large, resolve(other))


def test_a_batch_that_the_step_refuses_is_named():
    example = example_batch((np.zeros((4, 8)),), ("x",))
    step = tf.function(lambda x: tf.reshape(x, (4, 8)) @ tf.transpose(x))
    sized = SizedStep(lambda given: step.get_concrete_function(*given), example)
    with raises(CheckmateError, "batch-refused", 5):
        sized.program(5)


def test_one_more_forward_pass_costs_what_the_forward_pass_costs_alone():
    weights = [tf.Variable(tf.ones((64, 64))) for _ in range(4)]

    def forward(x):
        for each in weights:
            x = tf.tanh(x @ each)
        return tf.reduce_sum(x)

    def step(x):
        with tf.GradientTape() as tape:
            loss = forward(x)
        for each, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            each.assign_sub(gradient)
        return loss

    whole, alone = (
        extract_program(resolve(tf.function(each).get_concrete_function(tf.TensorSpec((256, 64)))))
        for each in (step, forward)
    )
    assert forward_cost(whole.graph) == pytest.approx(alone.graph.one_pass_cost, rel=0.01)
