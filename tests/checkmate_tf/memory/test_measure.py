"""The allocator's own count."""

from __future__ import annotations

import keras
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


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_a_models_step_runs_as_fit_runs_it(run_eagerly):
    eager = []

    class Told(keras.Model):
        def train_step(self, data):
            eager.append(tf.executing_eagerly())
            return super().train_step(data)

    inputs = keras.Input((8,))
    model = Told(inputs, keras.layers.Dense(1)(inputs))
    model.compile("sgd", "mse", run_eagerly=run_eagerly, jit_compile=False)
    x, y = tf.ones((4, 8)), tf.ones((4, 1))
    model.fit(x, y, verbose=0)
    assert measure_peak(model.train_step, (x, y)) > 0
    assert set(eager) == {run_eagerly}
