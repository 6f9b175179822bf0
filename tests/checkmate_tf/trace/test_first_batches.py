"""Batches that were looked at are handed on, each once, whoever asks next."""

from __future__ import annotations

import itertools

import pytest
import tensorflow as tf

from checkmate_tf.trace.first_batches import FirstBatches


def batches_of(count):
    return iter(tf.data.Dataset.range(count).batch(1))


def first_ones(iterator, count):
    return [int(each[0]) for each in itertools.islice(iterator, count)]


@pytest.mark.parametrize("at_once", [1, 2])
def test_looked_at_again_none_is_lost(at_once):
    """As where Keras' train function is made anew after the first step."""
    iterator, batches = batches_of(12), FirstBatches()
    seen = []
    for _ in range(3):
        seen += first_ones(batches.looked_at(iterator, at_once)[1], at_once)
    while len(seen) < 12:
        seen += first_ones(batches.next_ones(iterator, at_once), at_once)
    assert seen == [*range(12)]


def test_the_same_batches_as_often_as_asked():
    iterator = batches_of(5)
    again = FirstBatches().repeatable(iterator, 2)
    assert [first_ones(again(), 9) for _ in range(2)] == [[0, 1]] * 2
    assert first_ones(iterator, 9) == [2, 3, 4]


def test_at_the_end_there_are_none():
    iterator = batches_of(0)
    assert first_ones(FirstBatches().repeatable(iterator, 2)(), 1) == []


def test_of_other_kinds_nothing_is_taken():
    ragged = tf.ragged.constant([[1], [2, 3]])
    iterator = iter(tf.data.Dataset.from_tensors(ragged))
    assert FirstBatches().repeatable(iterator, 1) is None
    assert next(iterator).to_list() == [[1], [2, 3]]
