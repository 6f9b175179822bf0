"""The allocator's own count."""

from __future__ import annotations

import pytest
import tensorflow as tf

from checkmate_tf import measure_peak
from checkmate_tf.memory.measure import held_bytes


def test_peak_counts_what_was_there_and_what_came():
    before = held_bytes("CPU:0")
    kept = tf.ones((1024, 1024))
    peak = measure_peak(lambda: tf.reduce_sum(tf.ones((2048, 1024)) + 1), device="CPU:0")
    assert peak >= before + 4 * 2**20 + 8 * 2**20
    del kept


def test_a_smaller_function_after_a_larger_one():
    large = measure_peak(lambda: tf.ones((4096, 1024)), device="CPU:0")
    small = measure_peak(lambda: tf.ones((16, 1024)), device="CPU:0")
    assert small < large


def test_an_error_of_the_function_is_its_own():
    def fails():
        raise ValueError("of memory, but not the allocator's")

    with pytest.raises(ValueError, match="of memory, but"):
        measure_peak(fails, device="CPU:0")
