"""Several replicas, in a process with two devices."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

REPLICAS = """
    import json
    import keras
    import numpy as np
    import tensorflow as tf
    import checkmate_tf
    from solvers import CheckmateError

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    QUICK = dict(budget=0.9, solver="linearized_greedy", trial_run=False)

    with strategy.scope():
        weights = tf.Variable(tf.random.stateless_normal((64, 64), (3, 4)) / 8)
        counter = tf.Variable(
            0.0,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
            trainable=False,
        )
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((64,))] + [keras.layers.Dense(64) for _ in range(6)])
        model.compile("sgd", "mse", jit_compile=False)

    def step(x):
        counter.assign_add(tf.cast(tf.shape(x)[0], tf.float32))
        with tf.GradientTape() as tape:
            y = x
            for _ in range(8):
                y = tf.tanh(y @ weights)
            loss = tf.reduce_sum(y)
        return loss, tape.gradient(loss, weights)

    x = tf.random.stateless_normal((128, 64), (1, 2))
    halves = strategy.experimental_distribute_values_from_function(
        lambda context: tf.split(x, 2)[context.replica_id_in_sync_group])

    def on_every_replica(outer):
        def run(one):
            def replicated(values):
                loss, gradient = strategy.run(one, args=(values,))
                return (strategy.reduce("SUM", loss, axis=None),
                        strategy.reduce("SUM", gradient, axis=None))
            return outer(replicated)(halves)

        for each in strategy.experimental_local_results(counter):
            each.assign(0.0)
        kept = checkmate_tf.rematerialize(step, **QUICK)
        loss, gradient = run(kept)
        counts = [float(v.read_value()) for v in strategy.experimental_local_results(counter)]
        expected_loss, expected = run(tf.function(step))
        distance = tf.reduce_max(abs(gradient - expected)) / tf.reduce_max(abs(expected))
        return counts, float(loss), float(expected_loss), float(distance), kept.plan is not None

    def whole(x):
        losses, gradients = strategy.run(step, args=(x,))
        return strategy.reduce("SUM", gradients, axis=None)

    def words_of(function, *args, **kwargs):
        try:
            function(*args, **kwargs)
        except CheckmateError as error:
            return str(error)
        return "ran"

    model.train_step = checkmate_tf.rematerialize(model.train_step, batch_size=64, **QUICK)
    data = np.ones((256, 64))
    print(json.dumps({
        "tf.function": on_every_replica(tf.function),
        "eager": on_every_replica(lambda function: function),
        "inside": words_of(checkmate_tf.rematerialize(whole, **QUICK), tf.ones((128, 64))),
        "fit": words_of(model.fit, data, data, batch_size=128, verbose=0),
    }))
"""


@pytest.fixture(scope="module")
def on_replicas():
    """What a process with two devices has seen."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(REPLICAS)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("outer", ["tf.function", "eager"])
def test_every_replica_has_a_trace_of_its_own(on_replicas, outer):
    counts, loss, expected, distance, planned = on_replicas[outer]
    assert counts == [64, 64]
    assert loss == pytest.approx(expected, rel=1e-4)
    assert distance < 1e-4
    assert planned


def test_replicas_inside_the_step_are_refused(on_replicas):
    assert "strategy.run" in on_replicas["inside"]


def test_fit_on_two_replicas_is_refused_in_words(on_replicas):
    assert "replica" in on_replicas["fit"]
