"""The first steps of training are looked at, and a plan that takes too much is made again."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.planning.monitor import BudgetWatch, MonitoredStep
from tests.messages import warns
from tests.steps import noisy_question

pytestmark = pytest.mark.usefixtures("memory_in_one_piece")

BYTES = 4 << 20


def allocating(count):
    """A step that holds `count` pieces of 4 MiB at once."""
    shape = (count, 1 << 20)
    return tf.function(lambda x: tf.reduce_sum(x + tf.random.uniform(shape)))


def held_beside_a_step(size):
    """Tensors that hold at least so many bytes, and what they hold.

    A tensor takes a free piece of memory of up to twice its size whole, so a large one would hold
    24 to 48 MiB for 24, as chance has it.
    """
    before, tensors = held_bytes(), []
    while held_bytes() - before < size:
        tensors.append(tf.ones(1 << 18))
    return tensors, held_bytes() - before


def test_a_step_within_its_budget_is_kept():
    def never(margin):
        raise AssertionError(margin)

    budget = checkmate_tf.measure_peak(allocating(8), tf.ones(1)) + BYTES
    monitored = MonitoredStep(allocating(1), budget, never)
    for _ in range(12):
        assert np.isfinite(monitored(tf.ones(1)))


@pytest.mark.parametrize("watched", ["monitored", "in fit"])
def test_a_first_step_in_which_kernels_are_chosen_is_only_told(watched):
    def never(*margin):
        raise AssertionError(margin)

    large, small = allocating(8), allocating(1)
    budget = checkmate_tf.measure_peak(small, tf.ones(1)) + BYTES
    steps = iter([large, *[small] * 12])

    def step(x):
        return next(steps)(x)

    if watched == "monitored":
        run = MonitoredStep(step, budget, never, is_cold=True)
    else:
        run = partial(BudgetWatch(budget, never, is_cold=True).run, step)
    with warns("over-budget-at-first"):
        run(tf.ones(1))
    for _ in range(12):
        run(tf.ones(1))


def test_a_step_over_its_budget_gets_a_leaner_plan():
    small, large = allocating(1), allocating(8)
    budget = checkmate_tf.measure_peak(small, tf.ones(1)) + BYTES
    margins = []

    def leaner(margin):
        margins.append(margin)
        return small

    monitored = MonitoredStep(large, budget, leaner)
    with warns("over-budget-planned-again"):
        monitored(tf.ones(1))
    assert checkmate_tf.measure_peak(monitored, tf.ones(1)) <= budget
    assert len(margins) == 1
    excess = checkmate_tf.measure_peak(large, tf.ones(1)) - budget
    assert margins[0] == pytest.approx(excess, abs=BYTES)


def test_it_gives_up_after_two_plans():
    monitored = MonitoredStep(allocating(8), 1, lambda margin: allocating(8))
    for expected in ("planned-again", "planned-again", "plan-kept"):
        with warns(f"over-budget-{expected}"):
            monitored(tf.ones(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monitored(tf.ones(1))


def test_no_leaner_plan_is_said_once():
    def impossible(margin):
        raise checkmate_tf.BudgetError("budget-too-small", "budget 1 B is too small")

    monitored = MonitoredStep(allocating(8), 1, impossible)
    with warns("over-budget-no-leaner-plan", "budget 1 B is too small"):
        monitored(tf.ones(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monitored(tf.ones(1))


@pytest.mark.slow
def test_what_is_held_beside_the_step_later_on_makes_its_plan_leaner():
    weights = tf.Variable(tf.random.stateless_normal((256, 256), (1, 2)) / 16)

    def step(x):
        with tf.GradientTape() as tape:
            for _ in range(24):
                x = tf.tanh(x @ weights)
            loss = tf.reduce_sum(x)
        return loss, tape.gradient(loss, weights)

    x = tf.ones((4096, 256))
    expected = tf.function(step)(x)[1].numpy()
    kept = checkmate_tf.rematerialize(step, budget=0.8, time_limit=6)
    kept(x)
    budget, held = kept.plan.budget, kept.plan.measured_peak
    beside, bytes_beside = held_beside_a_step(24 << 20)
    with warns("over-budget-planned-again"):
        kept(x)
    kept(x)  # a plan that misses by chance is made leaner once more
    assert kept.plan.budget == budget
    # How much time either plan costs follows from how long the search for it could work.
    assert kept.plan.measured_peak - bytes_beside < held
    assert checkmate_tf.measure_peak(kept, x) <= budget
    assert np.allclose(kept(x)[1], expected, rtol=1e-4, atol=1e-2)
    del beside


def test_warnings_point_to_the_line_that_runs_the_step():
    monitored = MonitoredStep(allocating(8), 1, lambda margin: allocating(8))
    with warns("over-budget-planned-again") as caught:
        monitored(tf.ones(1))
    assert caught[0].filename == __file__


def test_a_step_that_draws_random_numbers_is_not_exchanged():
    """Its generators would begin anew."""
    noisy, x, expected = noisy_question()
    step = checkmate_tf.rematerialize(noisy, budget=0.8, solver="linearized_greedy")
    losses = [step(x)[0].numpy()]
    beside = tf.ones((8, 1 << 20))
    losses += [step(x)[0].numpy() for _ in range(2)]
    assert checkmate_tf.measure_peak(step, x) > step.plan.budget
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    del beside
