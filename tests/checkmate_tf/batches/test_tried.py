"""Which smaller batch is looked at after a plan that failed."""

from __future__ import annotations

import pytest

from checkmate_tf.batches.question import Asked
from checkmate_tf.batches.tried import TriedPlans


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
