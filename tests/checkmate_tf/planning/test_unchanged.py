"""When the unchanged step is the answer, and when a budget is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tensorflow as tf

from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.planning.expectation import Expectation
from checkmate_tf.planning.plan_maker import PlanMaker
from checkmate_tf.planning.question import Question
from checkmate_tf.planning.unchanged import plain_instead

BUDGET = 1000


@pytest.fixture(scope="module")
def question() -> Question:
    function = tf.function(lambda x: tf.reduce_sum(tf.exp(x)))
    extracted = extract_step(function.get_concrete_function(tf.TensorSpec((8,))))
    return Question(extracted, 10, BUDGET, 0, BUDGET, ())


@pytest.mark.parametrize(
    ("measured", "needs", "runs"),
    [
        (900, 2000, True),  # keeps the budget
        (900, None, True),
        (1500, 2000, True),  # no plan takes less
        (1500, 1200, False),
        (1500, None, False),  # nothing ran, so that nothing is known of plans
        (None, 2000, False),
    ],
)
@pytest.mark.filterwarnings("ignore:.*no plan saves memory")
def test_the_unchanged_step_runs_where_no_plan_takes_less(question, measured, needs, runs):
    asked = replace(question, measured_baseline_peak=measured)
    unchanged = PlanMaker(asked, Expectation(asked), None).unchanged()
    found = plain_instead(asked, unchanged, needs)
    assert (found is not None) == runs
    if found is not None:
        assert found.runs_plain
        assert found.keeps == (measured <= BUDGET)
        assert found.plan.measured_peak == measured
