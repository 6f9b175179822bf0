"""What runs beside others on a CPU: products, up to the next one, where there is room."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.graph.one_order import one_order, parts_of_node
from checkmate_tf.rewriting.rewrite import as_function
from checkmate_tf.trace.repeatability import updates_in_place
from solvers import Schedule
from tests.steps import all_before, random_batch, schedule_of, small_cnn

GRADIENT, PRODUCTS = "Conv2DBackpropFilter", ("Conv2D", "Conv2DBackpropInput", "MatMul")


@pytest.fixture(scope="module")
def extracted():
    model = small_cnn(side=64)
    step = tf.function(model.train_step).get_concrete_function(random_batch(side=64))
    return extract_step(step)


@pytest.fixture(scope="module", params=["input order", "rematerialized"])
def schedule(request, extracted):
    return schedule_of(extracted, request.param)


@pytest.fixture(scope="module")
def order(extracted, schedule):
    return one_order(extracted, schedule)


def kinds(extracted, part):
    return {extracted.program.operations[number].type for number in part}


def test_products_run_beside_others_most_of_all_gradients_of_weights(extracted, order):
    beside = [kinds(extracted, order.parts[place]) for place in order.beside]
    assert any(GRADIENT in each for each in beside)
    assert all(not each.isdisjoint((GRADIENT, *PRODUCTS)) for each in beside)


def test_they_end_with_the_next_product(extracted, order):
    for place, last in order.beside.items():
        for part in order.parts[place + 1 : last]:
            assert kinds(extracted, part).isdisjoint(PRODUCTS)


def test_what_needs_them_waits_until_then(extracted, order):
    reads = extracted.program.reads
    for place, last in order.beside.items():
        made = set(order.parts[place])
        for part in order.parts[place + 1 : last + 1]:
            assert all(tensor.producer not in made for n in part for tensor in reads[n])


def test_operations_run_as_often_as_the_schedule_says(extracted, schedule, order):
    expected: Counter[int] = Counter(extracted.prologue)
    for node, attached in extracted.computations(schedule):
        expected.update((*extracted.nodes[node], *attached))
    for number in updates_in_place(extracted.program).left_out:
        del expected[number]
    assert Counter(order.numbers) == expected


def test_operations_follow_what_they_need(extracted, order):
    """What was written before is read after it, and the other way round."""
    program = extracted.program
    updates = updates_in_place(program)
    runs = {each: kernel for kernel, made in updates.kernels.items() for each in made.replaced}
    first: dict[int, int] = {}
    for place, number in enumerate(order.numbers):
        first.setdefault(number, place)
    for number, before in enumerate(program.order):
        needs = before | {tensor.producer for tensor in program.reads[number]}
        for each in needs:
            one, other = runs.get(each, each), runs.get(number, number)
            assert one == other or first[one] < first[other]


def test_together_they_hold_no_more_than_is_held_in_turn(extracted, order):
    """Counted anew, without buffers that are taken over: all bytes between first and last use."""
    ends_of_parts = np.cumsum([len(part) for part in order.parts])
    ends = {}
    for part, last in order.beside.items():
        end = ends_of_parts[part]
        ends |= dict.fromkeys(range(end - len(order.parts[part]), end), ends_of_parts[last] - 1)
    assert most_held(extracted, order.numbers, ends) <= most_held(extracted, order.numbers, {})


def most_held(extracted, numbers, ends):
    """Most bytes held while one of the operations runs, if each runs until its end."""
    newest, size, first, last = {}, [], [], []
    for place, number in enumerate(numbers):
        end = ends.get(place, place)
        for tensor in updates_in_place(extracted.program).reads(extracted.program, number):
            last[newest[tensor]] = max(last[newest[tensor]], end)
        for tensor in extracted.program.produced[number]:
            newest[tensor] = len(size)
            size.append(tensor.bytes)
            first.append(place)
            last.append(end)
    for tensor in extracted.program.outputs:
        last[newest[tensor]] = len(numbers)
    held = np.zeros(len(numbers) + 2, int)
    np.add.at(held, first, size)
    np.add.at(held, np.array(last) + 1, np.negative(size))
    return int(np.cumsum(held).max())


@pytest.mark.parametrize(("waves", "has_room"), [(1, False), (3, True)])
def test_where_a_step_never_holds_as_much_all_run_in_turn(waves, has_room):
    """A product takes as much as a wave; what holds three waves at its end has room for both."""

    def step(x):
        product = tf.reduce_sum(x @ x)
        made = [tf.sin(x), *(tf.sin(x + n) for n in range(1, waves))]
        return product, made

    spec = tf.TensorSpec((256, 256))
    extracted = extract_step(tf.function(step).get_concrete_function(spec))
    order = one_order(extracted, Schedule(range(len(extracted.graph))))
    assert bool(order.beside) == has_room


def test_of_two_products_one_waits_for_the_other_unless_it_runs_beside_it(extracted):
    schedule = Schedule(range(len(extracted.graph)))
    order = one_order(extracted, schedule)
    pairs = [
        (place, last)
        for place, last in order.beside.items()
        if not kinds(extracted, order.parts[last]).isdisjoint((GRADIENT, *PRODUCTS))
    ]
    emitted = as_function(extracted, schedule).graph.get_operations()
    products = [each for each in emitted if each.type in (GRADIENT, *PRODUCTS)]
    before = {each.name: all_before(each) for each in products}
    side_by_side = [
        (one, other)
        for one, other in combinations(products, 2)
        if one.name not in before[other.name] and other.name not in before[one.name]
    ]
    assert len(side_by_side) == len(pairs) > 0


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
