"""Variables lie in one block, each in a buffer of its own, with all their bits."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.layout import address_of
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.planning import variable_places
from checkmate_tf.planning.preparation import prepared
from checkmate_tf.planning.request import parse_request
from checkmate_tf.planning.variable_places import (
    lay_down_anew,
    outside_tensor,
    pack_variables,
    variables_aside,
    variables_movable,
)
from checkmate_tf.trace.program import resolve

pytestmark = pytest.mark.usefixtures("memory_in_one_piece")

SIDE = 1024
BYTES = 4 * SIDE * SIDE
COUNT = 4


@pytest.fixture
def step():
    """A step, made by a function that makes four variables of one constant when it is traced."""
    constant = np.full((SIDE, SIDE), -0.0, np.float32)
    constant[0, :2] = np.nan, 1e-45
    variables = []

    @tf.function
    def step(x):
        if not variables:
            variables.extend(tf.Variable(tf.constant(constant)) for _ in range(COUNT))
        for each in variables[1:]:
            each.assign_add(variables[0] * x)  # the first one is read only
        return x

    before = held_bytes()
    concrete = step.get_concrete_function(tf.TensorSpec(()))
    assert held_bytes() - before < 2 * BYTES, "the variables must begin as one buffer"
    return resolve(concrete), variables, constant


def test_what_is_written_gets_a_buffer_of_its_own(step):
    program, variables, constant = step
    before = held_bytes()
    pack_variables(program.concrete)
    assert (COUNT - 1) * BYTES <= held_bytes() - before < COUNT * BYTES
    for each in variables:
        assert np.array_equal(each.numpy().view(np.uint32), constant.view(np.uint32))
    after = held_bytes()
    pack_variables(program.concrete)
    assert held_bytes() == after


def test_buffers_of_their_own_where_values_stay_on_the_device(step):
    program, variables, constant = step
    variables[2].scatter_update(tf.IndexedSlices(constant[1:2], [1]))  # readers get copies now
    before, places = held_bytes(), [address_of(each.value()) for each in variables[:2]]
    lay_down_anew(program.concrete)
    # Two of those that are written shared a buffer; the third one, with its own, is left alone.
    assert BYTES <= held_bytes() - before < 3 * BYTES
    assert address_of(variables[0].value()) == places[0]
    assert len({address_of(each.value()) for each in (*variables[:2], variables[3])}) == 3
    again = held_bytes()
    copies = [each.value() for each in variables]
    assert BYTES <= held_bytes() - again < 2 * BYTES
    for each in copies:
        assert np.array_equal(each.numpy().view(np.uint32), constant.view(np.uint32))


def test_what_has_a_buffer_of_its_own_stays_where_it_is(step):
    program, variables, _ = step
    pack_variables(program.concrete)
    places = [np.asarray(each.value()).ctypes.data for each in variables]
    assert len(set(places)) == COUNT
    pack_variables(program.concrete)
    assert [np.asarray(each.value()).ctypes.data for each in variables] == places


def test_gaps_between_variables_close(step):
    """A variable that lies behind a large gap is laid down before it."""
    program, variables, constant = step
    pack_variables(program.concrete)
    gap = tf.raw_ops.Empty(shape=[8 * BYTES], dtype=tf.uint8)
    variables[1].assign(tf.raw_ops.DeepCopy(x=constant))
    written = variables[1:]
    del gap
    pack_variables(program.concrete)
    places = sorted(np.asarray(each.value()).ctypes.data for each in written)
    assert places[-1] - places[0] < (COUNT + 1) * BYTES
    assert written[0].numpy().tobytes() == constant.tobytes()


def test_values_are_out_of_the_allocators_memory_for_a_while(step):
    program, variables, constant = step
    pack_variables(program.concrete)
    before = held_bytes()
    with variables_aside(program.concrete) as aside:
        assert aside
        assert held_bytes() <= before - (COUNT - 1) * BYTES
        assert all(each.numpy().tobytes() == constant.tobytes() for each in variables)
        variables[2].assign_add(tf.ones_like(variables[2]))
    assert held_bytes() == before
    assert variables[1].numpy().tobytes() == constant.tobytes()
    assert variables[2].numpy()[1, 1] == 1.0


def test_values_come_back_after_an_error(step):
    program, variables, constant = step
    pack_variables(program.concrete)
    before = held_bytes()
    with pytest.raises(KeyboardInterrupt), variables_aside(program.concrete):
        raise KeyboardInterrupt
    assert held_bytes() == before
    assert all(each.numpy().tobytes() == constant.tobytes() for each in variables)


def test_where_others_may_write_nothing_is_moved(step):
    program, variables, _ = step
    pack_variables(program.concrete)
    before = held_bytes()
    places = [np.asarray(each.value()).ctypes.data for each in variables]
    with variables_movable(None), variables_aside(program.concrete) as aside:
        assert not aside
        assert held_bytes() == before
        assert [np.asarray(each.value()).ctypes.data for each in variables] == places


def _places(variables):
    return [address_of(each.value()) for each in variables]


def test_once_somebody_has_written_nothing_is_moved(step):
    program, variables, _ = step
    with variables_movable(program.concrete):
        pack_variables(program.concrete)
        with variables_aside(program.concrete) as aside:
            assert aside
            variables[1].assign(tf.ones((SIDE, SIDE)))
        places, before = _places(variables), held_bytes()
        with variables_aside(program.concrete) as aside:
            assert not aside
            assert _places(variables) == places
        assert held_bytes() == before


def test_a_write_in_place_is_seen_also_long_after(step):
    program, variables, _ = step
    pack_variables(program.concrete)
    with variables_movable(program.concrete):
        pack_variables(program.concrete)
        before = held_bytes()
        variables[1].assign_add(tf.ones((SIDE, SIDE)))
        with variables_aside(program.concrete) as aside:
            assert not aside
        assert held_bytes() == before


def test_planning_begins_with_it(step):
    """Else variables that are first written in training take their memory from the budget."""
    program, variables, _ = step
    prepared(
        program,
        parse_request(0.5, "auto", None, "roofline", 1.0, "free", True),
        current_device(),
    )
    places = {np.asarray(each.value()).ctypes.data for each in variables}
    assert len(places) == COUNT


def test_a_write_amid_the_move_is_kept(step, monkeypatch):
    """What was moved before it comes back."""
    program, variables, constant = step
    pack_variables(program.concrete)
    copied = []

    def slow_copy(tensor):
        copied.append(outside_tensor(tensor))
        if len(copied) == 2:
            for each in variables[1:]:
                each.assign_add(tf.ones((SIDE, SIDE)))
        return copied[-1]

    monkeypatch.setattr(variable_places, "outside_tensor", slow_copy)
    before = held_bytes()
    with variables_movable(program.concrete), variables_aside(program.concrete) as aside:
        assert not aside
        assert held_bytes() == before
    assert variables[0].numpy().tobytes() == constant.tobytes()
    assert all(each.numpy()[1, 1] == 1.0 for each in variables[1:])


@pytest.mark.parametrize("shape", [(1,), (2, 3, 4), (1,) * 9])
@pytest.mark.parametrize("kind", ["float64", "bfloat16", "int64", "bool", "complex64"])
def test_every_kind_of_variable_comes_back_with_its_bits(kind, shape):
    """And afterwards it is read without a copy, as before."""
    dtype = tf.as_dtype(kind)
    check_return(tf.constant(np.ones(shape, dtype.as_numpy_dtype)))


@pytest.mark.parametrize("value", [-0.0, 1e-45, np.nan])
def test_a_scalar_comes_back_with_its_bits(value):
    check_return(tf.constant(value))


def check_return(value):
    variable = tf.Variable(value)
    step = tf.function(lambda: variable.assign(variable))
    before = variable.numpy().tobytes()
    with variables_aside(step.get_concrete_function()) as aside:
        outside = variable.value()
        assert aside
    assert variable.numpy().tobytes() == before
    one, other = variable.value(), variable.value()
    assert address_of(one) == address_of(other) != address_of(outside)


def test_empty_variables_say_nothing_of_writes():
    """They have no buffer, and any address."""
    variables = [tf.Variable(tf.zeros((3, size))) for size in (0, 2)]
    step = tf.function(lambda: [each.assign_add(each) for each in variables])
    concrete = step.get_concrete_function()
    with variables_movable(concrete):
        for _ in range(20):
            with variables_aside(concrete) as aside:
                assert aside


def test_no_write_of_another_thread_is_lost():
    """It trains variables that the step writes too, while that is planned and tried."""
    weights = [tf.Variable(tf.random.normal((256, 256)) / 16) for _ in range(8)]
    average = tf.Variable(tf.zeros((1024, 256)))

    @checkmate_tf.rematerialize(budget="1GiB", costs="roofline", time_limit=2)
    def step(x):
        with tf.GradientTape() as tape:
            for each in weights:
                x = tf.tanh(tf.matmul(x, each))
            loss = tf.reduce_sum(x)
        average.assign_add(tf.zeros_like(average))
        return tape.gradient(loss, weights)

    writes = 0
    is_planned = threading.Event()

    def train():
        nonlocal writes
        while not is_planned.is_set():
            average.assign_add(tf.ones_like(average))
            writes += 1

    thread = threading.Thread(target=train)
    thread.start()
    try:
        step(tf.ones((256, 256)))
    finally:
        is_planned.set()
        thread.join()
    assert writes > 0
    assert np.all(average == float(writes))
