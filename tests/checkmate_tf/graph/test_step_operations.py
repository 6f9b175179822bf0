"""Fused pairs are one operation; everything is in one place."""

from __future__ import annotations

from collections import Counter

import pytest
import tensorflow as tf

from checkmate_tf.graph.step_operations import costs_of_step, step_operations
from checkmate_tf.trace.program import resolve
from profiles.fusion import Fusion
from profiles.measure.measurement import measure
from profiles.roofline import FloatingPointOperations, floating_point_operations
from tests.steps import random_batch, small_cnn


@pytest.fixture(scope="module")
def program():
    model = small_cnn()
    return resolve(tf.function(model.train_step).get_concrete_function(random_batch()))


@pytest.fixture(scope="module")
def operations(program):
    return step_operations(program)


def test_every_operation_is_in_exactly_one_place(program, operations):
    placed = [member for each in operations for member in each.members]
    assert sorted(placed) == list(range(len(program.operations)))


def test_pairs_are_fused(operations):
    """Six convolutions and a dense layer with biases, and the gradients of the six."""
    kinds = Counter(e.operation.type for e in operations if isinstance(e.operation, Fusion))
    assert kinds["Conv2D+BiasAdd"] == 6
    assert kinds["MatMul+BiasAdd"] == 1
    backward = [kind for kind in kinds if "Conv2DBackpropFilter" in kind and "BiasAddGrad" in kind]
    assert sum(kinds[kind] for kind in backward) == 6


def test_a_fusion_can_be_measured(operations):
    for kind in ("Conv2D+BiasAdd", "MatMul+BiasAdd", "BiasAddGrad+Conv2DBackpropFilter"):
        fused = next(each.operation for each in operations if each.operation.type == kind)
        assert measure(fused, repeats=2).seconds > 0


def test_no_cost_is_lost_and_the_convolution_carries_its_pairs(program, operations):
    costs = costs_of_step(step_operations(program), FloatingPointOperations())
    total = sum(max(1.0, floating_point_operations(each.operation)) for each in operations)
    assert sum(costs) == pytest.approx(total)
    for each in operations:
        if each.operation.type == "Conv2D+BiasAdd":
            convolution, bias = each.members
            assert program.operations[each.heaviest].type == "Conv2D"
            assert (costs[convolution] > 0, costs[bias]) == (True, 0)


def test_a_pair_that_others_look_into_stays_apart():
    @tf.function(input_signature=[tf.TensorSpec((4, 5)), tf.TensorSpec((5, 6))])
    def step(x, w):
        product = x @ w
        return tf.nn.bias_add(product, tf.ones(6)), product

    kinds = {e.operation.type for e in step_operations(resolve(step.get_concrete_function()))}
    assert {"MatMul", "BiasAdd"} <= kinds
