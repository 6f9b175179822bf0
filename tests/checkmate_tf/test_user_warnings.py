"""Warnings name a line that the user wrote."""

from __future__ import annotations

import warnings

import tensorflow as tf

from checkmate_tf.user_warnings import left_unsaid, warn_user
from tests.messages import codes


def test_a_warning_names_no_file_that_autograph_has_written():
    @tf.function
    def outer(x):
        if tf.reduce_sum(x) > 0:
            warn_user("anything", "something")
        return x

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outer(tf.ones(3))
    assert [each.filename for each in caught if codes([each]) == ["anything"]] == [__file__]


def test_what_is_left_unsaid_is_told_by_its_code():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with left_unsaid("first"), left_unsaid("second"):
            for code in ("first", "second", "third"):
                warn_user(code, "the same words")
        warn_user("first", "the same words")
    assert codes(caught) == ["third", "first"]
