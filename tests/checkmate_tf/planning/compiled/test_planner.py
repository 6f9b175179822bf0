"""A compiled step that is traced again, where more or less is held beside it than before."""

from __future__ import annotations

import warnings

import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf import CheckmateWarning
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.planning.compiled.planner import CompiledPlanner
from checkmate_tf.planning.request import parse_request
from tests.dense_steps import SIZE, loss_and_gradient, some_weights

if held_bytes() is None:
    pytest.skip("the allocator keeps no count", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("memory_in_one_piece")

MANY = 40 << 20
TOO_MANY = 2 * MANY
"""Also where threads of other tests let some bytes go meanwhile."""

OVER_BUDGET = ("leanest-plan-over-budget", "no-plan-saves-memory")
"""Codes: XLA may leave of a plan what it likes."""


@pytest.fixture
def x():
    return tf.ones((2048, SIZE))


def rematerialized(**options):
    step = tf.function(loss_and_gradient(some_weights(), depth=16), jit_compile=True)
    return checkmate_tf.rematerialize(
        step, budget=held_bytes() + MANY, solver="linearized_greedy", time_limit=5, **options
    )


def test_what_was_too_little_is_planned_anew_where_there_is_enough(x):
    step = rematerialized(on_infeasible="min")
    beside = tf.zeros((TOO_MANY,), tf.uint8)
    with pytest.warns(CheckmateWarning) as caught:
        step(x, 1.0)
    assert caught[0].message.code in OVER_BUDGET
    assert step.plan.compiled_peak > step.plan.budget
    del beside
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(x, 2.0)  # another number of Python's, so that it is traced again
    assert step.plan.compiled_peak <= step.plan.budget
    assert step.plan.overhead == 0
    assert not step.plan.notes


def test_training_under_way_does_not_end_for_what_is_held_beside_it(x):
    step = rematerialized()
    step(x, 1.0)
    beside = tf.zeros((TOO_MANY,), tf.uint8)
    with pytest.warns(CheckmateWarning) as caught:
        loss, _ = step(x, 2.0)
    assert caught[0].message.code in OVER_BUDGET
    assert float(loss) == pytest.approx(float(step.function(x, 2.0)[0]), rel=1e-4)
    del beside


@pytest.mark.slow
def test_a_schedule_to_begin_with_is_taken_and_can_be_kept(x, tmp_path):
    """As `largest_batch` gives one that it has found at another size."""
    step = tf.function(loss_and_gradient(some_weights(), depth=6), jit_compile=True)
    leanest = checkmate_tf.tradeoff(step, x, points=2, time_limit=0.5)[-1].plan
    assert leanest.overhead > 0
    between = (leanest.budget + leanest.compiled_baseline_peak) // 2
    request = parse_request(between, "auto", None, "roofline", 1, "free", True)
    planner = CompiledPlanner(request)
    planned = planner.plan(step.get_concrete_function(x), None, begin_with=leanest.schedule)
    assert planned.plan.schedule == leanest.schedule
    planned.plan.save(tmp_path / "plan.json")
    assert checkmate_tf.Plan.load(tmp_path / "plan.json").schedule == leanest.schedule
