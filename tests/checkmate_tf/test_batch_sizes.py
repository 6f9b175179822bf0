"""Which batch a step is planned for, and when a larger one is warned of."""

from __future__ import annotations

import warnings

import pytest

from checkmate_tf.batch_sizes import BatchSizes
from tests.messages import warns


def test_the_largest_batch_is_kept_where_the_user_has_said_none() -> None:
    sizes = BatchSizes(None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for each in (4, 9, None, 2):
            sizes.note(each)
    assert (sizes.planned, sizes.largest) == (None, 9)


def test_a_batch_larger_than_said_is_planned_for_and_warned_of_once() -> None:
    sizes = BatchSizes(8)
    sizes.note(8)
    with warns("larger-batch-came", "batch of 9", "batch_size=8"):
        sizes.note(9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sizes.note(9)
        sizes.note(5)
    assert (sizes.planned, sizes.largest) == (9, 9)


@pytest.mark.parametrize(("said", "known"), [(8, 8), (None, 4)])
def test_inside_a_larger_function_the_consequence_is_said(said: int | None, known: int) -> None:
    sizes = BatchSizes(said)
    sizes.note(4)
    with warns("larger-batch-came", "batch of 9", f"batch_size={known}", "so be it"):
        assert sizes.note_inside(9, "so be it")
    assert not sizes.note_inside(9, "so be it")
    assert sizes.planned == 9
