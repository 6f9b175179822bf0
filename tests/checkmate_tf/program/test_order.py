"""The order in which a device runs a schedule."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import keras
import pytest
import tensorflow as tf

from checkmate_tf.devices.cpu import Cpu
from checkmate_tf.devices.current import planned_as
from checkmate_tf.devices.device import Device
from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.program.in_place import in_place
from checkmate_tf.program.lower import lower
from checkmate_tf.program.order import parts_of_node
from checkmate_tf.program.rewrite import as_function
from tests.steps import all_before, random_batch, schedule_of, small_cnn

PRODUCTS = ("Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "MatMul")


@pytest.fixture(scope="module")
def extracted():
    model = small_cnn(side=64)
    # A product of each weight with its decay waits for nothing, what subtracts it for a layer.
    model.compile(keras.optimizers.AdamW(), model.loss, jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    step = tf.function(model.train_step).get_concrete_function(random_batch(side=64))
    return extract_step(step)


@pytest.fixture(scope="module", params=["input order", "rematerialized"])
def schedule(request, extracted):
    return schedule_of(extracted, request.param)


@pytest.fixture(
    scope="module", params=[Cpu("CPU:0"), Device("GPU:0")], ids=["as freed", "as ready"]
)
def device(request):
    return request.param


@pytest.fixture(scope="module")
def instructions(extracted, schedule, device):
    return lower(extracted, schedule, device)


def left_out(extracted, device):
    return in_place(extracted.program).left_out if isinstance(device, Cpu) else frozenset()


def numbers(instructions):
    return [each.operation for each in instructions if each.operation is not None]


def test_operations_run_as_often_as_the_schedule_says(extracted, schedule, device, instructions):
    expected: Counter[int] = Counter(extracted.prologue)
    for node, attached in extracted.computations(schedule):
        expected.update((*extracted.nodes[node], *attached))
    for number in left_out(extracted, device):
        del expected[number]
    assert Counter(numbers(instructions)) == expected
    again = Counter(each.operation for each in instructions if each.recomputed)
    assert again == expected - Counter(dict.fromkeys(expected, 1))


def test_operations_follow_what_they_need(extracted, device, instructions):
    """What was written before is read after it, and the other way round."""
    program = extracted.program
    kernels = in_place(program).kernels if isinstance(device, Cpu) else {}
    runs = {each: kernel for kernel, made in kernels.items() for each in made.replaced}
    first: dict[int, int] = {}
    for place, number in enumerate(numbers(instructions)):
        first.setdefault(number, place)
    for number, before in enumerate(program.order):
        needs = before | {tensor.producer for tensor in program.reads[number]}
        for each in needs:
            one, other = runs.get(each, each), runs.get(number, number)
            assert one == other or first[one] < first[other]


def test_what_is_read_and_waited_for_comes_before(instructions):
    """Of two computations of a tensor the newer is read."""
    newest: dict[tuple[int, int], int] = {}
    for number, each in enumerate(instructions):
        assert all(other < number for other in each.waits_for)
        for tensor, by in each.reads:
            assert instructions[by].operation == tensor.producer
            assert newest[tensor.producer, tensor.index] == by or not instructions[by].recomputed
        if each.operation is not None:
            newest.update(((each.operation, index), number) for index in range(16))


def test_of_some_two_products_one_waits_for_the_other(extracted, schedule, device):
    """But in groups of small ones, and where the memory is there, they run side by side."""
    with planned_as(device):
        emitted = as_function(extracted, schedule).graph.get_operations()
    products = [each for each in emitted if each.type in PRODUCTS]
    assert len(products) > 10
    assert any(one.name in all_before(other) for one, other in pairwise(products))


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
