"""The order in which a CPU runs a schedule."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
import tensorflow as tf

from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.graph.one_order import one_order, parts_of_node
from checkmate_tf.rewriting.rewrite import as_function
from checkmate_tf.trace.repeatability import has_one_order, updates_in_place
from tests.steps import all_before, random_batch, schedule_of, small_cnn

PRODUCTS = ("Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "MatMul")


@pytest.fixture(scope="module")
def extracted():
    model = small_cnn(side=64)
    step = tf.function(model.train_step).get_concrete_function(random_batch(side=64))
    return extract_step(step)


@pytest.fixture(scope="module", params=["input order", "rematerialized"])
def schedule(request, extracted):
    return schedule_of(extracted, request.param)


@pytest.fixture(scope="module")
def numbers(extracted, schedule):
    return [number for part in one_order(extracted, schedule) for number in part]


def test_operations_run_as_often_as_the_schedule_says(extracted, schedule, numbers):
    expected: Counter[int] = Counter(extracted.prologue)
    for node, attached in extracted.computations(schedule):
        expected.update((*extracted.nodes[node], *attached))
    for number in updates_in_place(extracted.program).left_out:
        del expected[number]
    assert Counter(numbers) == expected


def test_operations_follow_what_they_need(extracted, numbers):
    """What was written before is read after it, and the other way round."""
    program = extracted.program
    updates = updates_in_place(program)
    runs = {each: kernel for kernel, made in updates.kernels.items() for each in made.replaced}
    first: dict[int, int] = {}
    for place, number in enumerate(numbers):
        first.setdefault(number, place)
    for number, before in enumerate(program.order):
        needs = before | {tensor.producer for tensor in program.reads[number]}
        for each in needs:
            one, other = runs.get(each, each), runs.get(number, number)
            assert one == other or first[one] < first[other]


@pytest.mark.skipif(not has_one_order(), reason="other devices have no one order")
def test_of_two_products_one_waits_for_the_other(extracted, schedule):
    """So every step asks for memory in the same order."""
    emitted = as_function(extracted, schedule).graph.get_operations()
    products = [each for each in emitted if each.type in PRODUCTS]
    assert len(products) > 10
    for one, other in pairwise(products):
        assert one.name in all_before(other)


class _Operation:
    def __init__(self, kind):
        self.type = kind


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["Conv2D", "BiasAdd", "Relu"], [[0, 1], [2]]),
        (["AddN", "BiasAddGrad", "Conv2DBackpropFilter"], [[0], [1, 2]]),
        (["BiasAdd", "Conv2D"], [[0], [1]]),
        (["Mul", "Add"], [[0], [1]]),
    ],
)
def test_fused_operations_stay_in_one_part(kinds, expected):
    assert parts_of_node([_Operation(kind) for kind in kinds], range(len(kinds))) == expected
