"""Variables lie in one block, each in a buffer of its own, with all their bits."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf.memory.measure import held_bytes
from checkmate_tf.planning.preparation import prepared
from checkmate_tf.planning.request import parse_request
from checkmate_tf.planning.variable_places import (
    pack_variables,
    variables_aside,
    variables_movable,
)
from checkmate_tf.trace.program import resolve

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
    with variables_movable(False), variables_aside(program.concrete) as aside:
        assert not aside
        assert held_bytes() == before
        assert [np.asarray(each.value()).ctypes.data for each in variables] == places


def test_planning_begins_with_it(step):
    """Else variables that are first written in training take their memory from the budget."""
    program, variables, _ = step
    prepared(program, parse_request(0.5, "auto", None, "roofline", 1.0, "free", True), None)
    places = {np.asarray(each.value()).ctypes.data for each in variables}
    assert len(places) == COUNT
