"""Which smaller batch is looked at after a plan that failed."""

from __future__ import annotations

import pytest
import tensorflow as tf

from checkmate_tf.batches.question import Asked
from checkmate_tf.batches.sized_step import SizedStep
from checkmate_tf.batches.tried import TriedPlans
from checkmate_tf.planning.request import parse_request


@pytest.mark.parametrize(
    ("needed", "size"),
    [
        ({}, 59),  # nothing is told
        ({64: 120}, 51),  # 100 of what is held for the step, where there are 80
        ({64: 101}, 59),  # so near to the budget that it may fail for the same reason
        ({64: 20 + 64 * 80}, 1),
    ],
)
def test_a_plan_that_failed_tells_how_much_smaller_a_batch_is_to_be(needed, size):
    asked = Asked(
        request=None, budget=100, overhead=None, held=20, batches=1,
        workspace=lambda operation: 0, not_here="", first=64,
    )  # fmt: skip
    plans = TriedPlans(None, asked, None, None, None, print, _needed=needed)
    assert plans._smaller(64, 0, 0) == size


def test_a_batch_of_which_a_kernel_leaves_nothing_to_plan_is_none_that_trains():
    """Beside a workspace of 20 MiB the rest of the step is too small to be in a graph."""
    weights = tf.Variable(tf.ones((4, 4)))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.tanh(tf.tanh(x @ weights) @ weights))
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    spec = tf.TensorSpec((None, 4))
    sized = SizedStep(lambda arguments: step.get_concrete_function(spec), None)
    budget = 1 << 20
    request = parse_request(budget, "auto", None, "roofline", 1.0, "free", False)
    asked = Asked(
        request=request, budget=budget, overhead=None, held=0, batches=1,
        workspace=lambda operation: 20 << 20, not_here="another device", first=4,
    )  # fmt: skip
    plan, why = TriedPlans(sized, asked, None, None, None, print)._look(4, None)
    assert plan is None
    assert why
