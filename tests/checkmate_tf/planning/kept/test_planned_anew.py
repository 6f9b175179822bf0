"""A plan is made anew where the kept one would be a worse answer now, and nowhere else."""

from __future__ import annotations

import warnings

import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.planning.trial import trial_run
from tests.checkmate_tf.planning.kept.starts import DEPTH, start
from tests.messages import announces, warns

pytestmark = pytest.mark.usefixtures("folder")


def test_the_share_of_a_smaller_batch_counts_from_its_measured_peak_at_a_start_of_its_own(
    step, x, counted, searches
):
    """Beside a larger one it has not run for trial."""
    start(step, x)[0](x[:1024])
    searches.clear()
    alone, _ = start(step, x[:1024])
    assert "run_unchanged" in searches
    assert alone.plan.measured_baseline_peak is not None
    searches.clear()
    start(step, x[:1024])
    assert searches == []


@pytest.fixture
def no_room(monkeypatch):
    """Stands for a device that is full for a while: there is no place for copies."""

    def refused(concrete):
        raise tf.errors.ResourceExhaustedError(None, None, "no room")

    with monkeypatch.context() as patch:
        patch.setattr(trial_run, "copy_written", refused)
        yield patch


def test_a_trial_run_that_failed_is_made_at_the_next_start(step, x, counted, no_room, searches):
    first, _ = start(step, x)
    assert first.plan.measured_peak is None
    assert first.plan.measured_baseline_peak is None
    no_room.undo()
    with announces("plan-not-taken", "trial run"):
        second, _ = start(step, x)
    assert second.plan.measured_peak is not None
    assert second.plan.measured_baseline_peak is not None
    searches.clear()
    start(step, x)
    assert searches == []


def test_one_that_fails_again_is_not_made_a_third_time(step, x, counted, no_room, searches):
    start(step, x)
    start(step, x)
    searches.clear()
    third, _ = start(step, x)
    assert searches == []
    assert third.plan.measured_peak is None


def test_a_step_that_refuses_made_up_inputs_is_tried_at_no_later_start(step, x, searches):
    def choosy(x):
        tf.debugging.assert_greater(tf.reduce_min(x), 0.9, "only ones")
        return step(x)

    first, _ = start(choosy, x)
    assert first.plan.measured_peak is None
    searches.clear()
    start(choosy, x)
    assert searches == []


@pytest.mark.usefixtures("memory_in_one_piece")
def test_more_that_is_held_beside_it_plans_anew(step, x, counted):
    budget = held_bytes() + DEPTH * x.dtype.size * x.shape.num_elements()
    asked = {"budget": budget, "on_infeasible": "min"}  # the rule may know no leaner plan
    first, _ = start(step, x, **asked)
    room = budget - max(first.plan.predicted_peak, first.plan.measured_peak)
    beside = tf.zeros((room + (8 << 20),), tf.uint8)
    with announces("plan-not-taken", "held beside it"):
        second, _ = start(step, x, **asked)
    assert second.plan.origin.resident - first.plan.origin.resident > room
    del beside


@pytest.mark.usefixtures("memory_in_one_piece")
def test_what_was_too_little_is_planned_anew_where_there_is_enough(step, x, counted):
    """The leanest plan of a start beside another model is not that of one without it."""
    room = 40 << 20
    asked = {"budget": held_bytes() + room, "on_infeasible": "min"}
    other_model = tf.zeros((2 * room,), tf.uint8)  # others may let some bytes go meanwhile
    with warns("leanest-plan-runs"):
        first, _ = start(step, x, **asked)
    assert first.plan.overhead > 0
    del other_model
    with warnings.catch_warnings(), announces("plan-not-taken", "free for it"):
        warnings.simplefilter("error")
        second, _ = start(step, x, **asked)
    assert second.plan.overhead == 0


@pytest.mark.slow
def test_the_leanest_plan_is_found_again_where_nothing_has_changed(step, x, searches):
    """Even the variables take more than such a budget."""
    asked = {"budget": 10_000, "on_infeasible": "min"}
    with warns("leanest-plan-runs"):
        schedule = start(step, x, **asked)[0].plan.schedule  # nothing else of it stays
    searches.clear()
    with warns("kept-plan-over-budget"):
        second, _ = start(step, x, **asked)
    assert searches == []
    assert second.plan.schedule == schedule


@pytest.mark.parametrize("budget", [0.9, "min"])
def test_where_none_is_kept_an_equal_graph_keeps_its_plan_all_the_same(
    step, x, monkeypatch, searches, budget
):
    monkeypatch.setenv("CHECKMATE_TF_PLANS", "off")
    kept = checkmate_tf.rematerialize(step, budget=budget, costs="roofline", time_limit=3)
    kept(x, 1.0)
    first = kept.plan
    assert searches
    searches.clear()
    loss, _ = kept(x, 3.0)  # another number of Python's, so that it is traced again
    assert searches == []
    assert kept.plan.schedule == first.schedule
    assert budget != "min" or kept.plan.budget == first.budget
    assert float(loss) == pytest.approx(float(step(x, 3.0)[0]), rel=1e-4)
