"""Variables that begin as one constant get a buffer each, with all their bits."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf.memory.measure import held_bytes
from checkmate_tf.planning.preparation import prepared
from checkmate_tf.planning.request import parse_request
from checkmate_tf.planning.shared_buffers import separate_variables
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
    separate_variables(program)
    assert (COUNT - 1) * BYTES <= held_bytes() - before < COUNT * BYTES
    for each in variables:
        assert np.array_equal(each.numpy().view(np.uint32), constant.view(np.uint32))
    after = held_bytes()
    separate_variables(program)
    assert held_bytes() == after


def test_what_has_a_buffer_of_its_own_stays_where_it_is(step):
    program, variables, _ = step
    separate_variables(program)
    places = [np.asarray(each.value()).ctypes.data for each in variables]
    assert len(set(places)) == COUNT
    separate_variables(program)
    assert [np.asarray(each.value()).ctypes.data for each in variables] == places


def test_planning_begins_with_it(step):
    """Else variables that are first written in training take their memory from the budget."""
    program, variables, _ = step
    prepared(program, parse_request(0.5, "auto", None, "roofline", 1.0, "free", True), None)
    places = {np.asarray(each.value()).ctypes.data for each in variables}
    assert len(places) == COUNT
