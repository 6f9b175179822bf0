"""When a step is planned anew; and what planning takes for itself is not held afterwards."""

from __future__ import annotations

import gc
import warnings
from dataclasses import replace

import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.planning.compiled.planner import CompiledPlanner
from checkmate_tf.planning.planner import Planner
from checkmate_tf.planning.request import parse_request
from solvers import BudgetError
from tests import dense_steps
from tests.messages import codes, warns

if held_bytes() is None:
    pytest.skip("the allocator keeps no count", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("memory_in_one_piece")

SIZE = 1999  # of no network whose kernels a stored profile knows


@pytest.fixture
def no_collection():
    """Nothing is collected by chance."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_kernels_that_were_measured_are_let_go(no_collection):
    weights = [tf.Variable(tf.random.normal((SIZE, SIZE), stddev=0.02)) for _ in range(3)]

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = x
            for each in weights:
                y = tf.nn.softmax(tf.tanh(y @ each))
            loss = tf.reduce_sum(tf.math.square(y))
        for each, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            each.assign_sub(0.1 * gradient)
        return loss

    concrete = step.get_concrete_function(tf.TensorSpec((SIZE, SIZE)))
    held = held_bytes()
    request = parse_request("2GiB", "auto", None, "roofline", 1, "free", trial_run=False)
    planned = Planner(request).plan(concrete, None)
    assert planned is not None
    assert held_bytes() - held < SIZE * SIZE  # a quarter of a variable


def test_training_under_way_goes_on_by_the_leanest_plan_until_there_is_room_again():
    step = dense_steps.loss_and_gradient(dense_steps.some_weights(), depth=24)
    x = tf.ones((2048, dense_steps.SIZE))
    room = 40 << 20
    kept = checkmate_tf.rematerialize(
        step, budget=held_bytes() + room, solver="linearized_greedy", time_limit=5
    )
    kept(x, 1.0)
    assert kept.plan.overhead == 0
    beside = tf.zeros((2 * room,), tf.uint8)  # others may let some bytes go meanwhile
    with warns("leanest-plan-runs"):
        kept(x, 2.0)  # another number of Python's, so that it is traced again
    lean = kept.plan
    assert lean.measured_peak > lean.budget
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kept(x, 3.0)
        assert kept.plan.schedule == lean.schedule
        del beside
        kept(x, 4.0)
    assert not [each for each in codes(caught) if "leanest-plan" in each]
    assert kept.plan.overhead == 0
    assert kept.plan.measured_peak <= kept.plan.budget


@pytest.mark.parametrize("xla", [False, True])
def test_the_leanest_takes_over_from_a_plan_that_exhausted_the_memory(xla):
    """Also where it is leaner by less than was asked for in vain."""
    function = dense_steps.loss_and_gradient(dense_steps.some_weights(), depth=8)
    step = tf.function(function, jit_compile=xla)
    spec = tf.TensorSpec((2048, dense_steps.SIZE))
    budget = held_bytes() + (4 << 20)
    request = parse_request(budget, "auto", None, "roofline", 0.2, "fixed", trial_run=False)
    planner = CompiledPlanner(request) if xla else Planner(request)
    planned = planner.plan(step.get_concrete_function(spec), None, arriving=0)
    assert planned.plan.overhead > 0

    def leaner_than(exhausted):
        concrete = step.get_concrete_function(spec)
        return planner.leaner(concrete, None, budget, 3 << 20, 0, exhausted)

    def with_a_peak_of(peak):
        plan = replace(planned.plan, predicted_peak=peak, compiled_peak=peak if xla else None)
        return replace(planned, plan=plan)

    with pytest.raises(BudgetError):
        leaner_than(with_a_peak_of(planned.plan.origin.resident))
    found = leaner_than(with_a_peak_of(budget))
    assert found.plan.peak < budget
    again = planner.plan(step.get_concrete_function(spec), None, arriving=0)
    assert again.plan.schedule == found.plan.schedule
