"""The allocator's own count."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import keras
import pytest
import tensorflow as tf

from checkmate_tf import measure_peak
from checkmate_tf.devices.measure import held_bytes


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


TWO_DEVICES = """
    import keras
    import numpy as np
    import tensorflow as tf
    import checkmate_tf
    from checkmate_tf.devices.measure import arriving_bytes, held_bytes
    from profiles.devices import default_device

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    sizes = (512, 256)
    here = tf.random.stateless_uniform(sizes, (0, 1))
    with tf.device("CPU:1"):
        there = tf.identity(here)
        texts = tf.constant(["a", "b"])
        assert default_device() == "CPU:1"
        with tf.device("CPU:0"):
            assert default_device() == "CPU:0"
    with tf.device("GPU:7"):  # TensorFlow takes another one
        assert default_device() == "CPU:0"
    assert default_device() == "CPU:0"

    assert here.device != there.device
    of_one = here.numpy().nbytes
    assert arriving_bytes(here) == 0
    assert arriving_bytes({"x": there, "y": [here, np.zeros(sizes, np.float32)]}) == 2 * of_one
    assert arriving_bytes(tf.cast(there, tf.bfloat16)) in (0, of_one // 2)
    assert arriving_bytes(texts) > 0
    with tf.device("CPU:1"):
        assert arriving_bytes((here, there)) == of_one

    weights = tf.Variable(tf.eye(256))

    def step(x):
        for _ in range(12):
            x = tf.exp(-tf.square(x @ weights))
        return tf.reduce_sum(x)

    planned = checkmate_tf.rematerialize(step, budget=1.0, solver="linearized_greedy")
    for x in (there, here):
        assert np.isfinite(planned(x))
    with tf.device("CPU:1"):
        assert planned(there).device == there.device
    print("done")
"""


@pytest.mark.slow
def test_tensors_of_another_device_and_the_device_of_a_scope():
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(TWO_DEVICES)], capture_output=True, text=True
    )
    assert ended.stdout.endswith("done\n"), ended.stderr
