"""Batches that are handed on come once, in their order, and TensorFlow traces nothing for them."""

from __future__ import annotations

import itertools

import pytest
import tensorflow as tf

from checkmate_tf.trace.batch_feed import BatchFeed

SPEC = tf.TensorSpec([None], tf.int32), {"text": tf.TensorSpec([None, None], tf.string)}


def batch(length):
    return [tf.range(length), tf.fill([length, 2], "a")]


def lengths(iterator, count=None):
    return [len(first) for first, _ in itertools.islice(iterator, count)]


def test_one_after_the_other_by_one_iterator():
    feed = BatchFeed()
    first = feed.over([batch(3), batch(1)], SPEC)
    assert first.element_spec == SPEC
    assert lengths(first, 2) == [3, 1]
    second = feed.over([batch(2)], SPEC)
    assert second is first
    assert lengths(second, 1) == [2]


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_what_is_left_of_those_before_is_lost(taken):
    feed = BatchFeed()
    assert len(lengths(feed.over([batch(5), batch(6)], SPEC), taken)) == min(taken, 2)
    assert lengths(feed.over([batch(1)], SPEC)) == [1]
    assert lengths(feed.over([batch(2), batch(3)], SPEC)) == [2, 3]


def test_batches_of_another_type():
    feed = BatchFeed()
    first = feed.over([batch(3)], SPEC)
    other = feed.over([[tf.zeros([4])]], tf.TensorSpec([None]))
    assert [each.shape for each in other] == [(4,)]
    assert first is not other


def test_a_function_that_takes_them_is_traced_once():
    feed = BatchFeed()
    data = iter(tf.data.Dataset.range(2).batch(2).map(lambda each: tf.zeros([each[0]])))

    @tf.function
    def taken(iterator):
        return tf.size(next(iterator))

    sizes = [3, 1, 2]
    found = [int(taken(feed.over([[tf.zeros(each)]], data.element_spec))) for each in sizes]
    assert found == sizes
    assert taken.experimental_get_tracing_count() == 1
    with pytest.raises(tf.errors.OutOfRangeError):
        taken(feed.over([], data.element_spec))
