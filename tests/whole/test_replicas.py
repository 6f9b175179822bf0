"""Several replicas, in a process with two devices: results and memory beside the plain step's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.slow

REPLICAS = """
    import json
    import warnings
    import keras
    import numpy as np
    import tensorflow as tf
    import checkmate_tf
    from solvers import CheckmateError

    warnings.simplefilter("ignore")
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    layers = keras.layers
    x = np.random.default_rng(0).random((2048, 32), np.float32)
    halves = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(np.split(x, 2)[context.replica_id_in_sync_group]))

    def rematerialized(step, budget=0.85):
        return checkmate_tf.rematerialize(
            step, budget=budget, solver="linearized_greedy", batch_size=1024, time_limit=5)

    def model_and_optimizer():
        keras.utils.set_random_seed(0)
        with strategy.scope():
            blocks = [[layers.Dense(32), layers.BatchNormalization(),
                       layers.Activation("tanh"), layers.Dropout(0.1)] for _ in range(3)]
            model = keras.Sequential([keras.Input((32,)), *sum(blocks, [])])
            optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
            model.compile(optimizer, "mse", metrics=["mae"], jit_compile=False)
            optimizer.build(model.trainable_variables)
        return model, optimizer

    def values(model, optimizer):
        of_replicas = strategy.experimental_local_results
        every = [each.value for each in model.variables + optimizer.variables]
        return [np.asarray(one) for each in every for one in of_replicas(each)]

    def fit(ours):
        model, optimizer = model_and_optimizer()
        step = None
        if ours:
            step = model.train_step = rematerialized(model.train_step)
        run = lambda: model.fit(x, x, batch_size=2048, epochs=2, shuffle=False, verbose=0).history
        return run, step, (model, optimizer)

    def loop(which):
        def make(ours):
            model, optimizer = model_and_optimizer()
            change = rematerialized if ours else lambda step: step

            def gradients(batch):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(model(batch, training=True) - batch))
                return loss, tape.gradient(loss, model.trainable_variables)

            if which == "gradients":
                gradients = step = change(gradients)

            def update(batch):
                loss, found = gradients(batch)
                optimizer.apply_gradients(zip(found, model.trainable_variables))
                return loss

            if which == "update":
                update = step = change(update)

            def whole(batch):
                return strategy.reduce("SUM", strategy.run(update, args=(batch,)), axis=None)

            if which == "whole":
                whole = step = change(whole)
            run = tf.function(whole)
            return lambda: [float(run(halves)) for _ in range(2)], step, (model, optimizer)
        return make

    def peak_of(run):
        tf.config.experimental.reset_memory_stats("CPU:0")
        run()
        return tf.config.experimental.get_memory_info("CPU:0")["peak"]

    def compared(make):
        def train(ours):
            run, step, variables = make(ours)
            results = run()
            peak = peak_of(run)
            return results, values(*variables), peak, step
        ours, plain = train(True), train(False)
        plan = ours[3].plan
        return {
            "equal": ours[0] == plain[0] and all(map(np.array_equal, ours[1], plain[1])),
            "variables": len(plain[1]),
            "recomputed": len(plan.schedule) - len(plan.graph),
            "budgets": 2 * plan.budget, "peak": ours[2],
        }

    def words_of(function, *args, **kwargs):
        try:
            function(*args, **kwargs)
        except CheckmateError as error:
            return str(error)
        return "ran"

    def central_storage():
        central = tf.distribute.experimental.CentralStorageStrategy()
        step = rematerialized(lambda batch: (tf.reduce_sum(batch), batch))
        run = tf.function(lambda batch: central.run(step, args=(batch,)))
        return words_of(run, tf.ones((4, 4)))

    def devices():
        (model, optimizer), found = model_and_optimizer(), {}

        def gradients(batch):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(batch, training=True) - batch))
            return tape.gradient(loss, model.trainable_variables)

        step = rematerialized(gradients)
        traced = tf.function(lambda batch: strategy.run(step, args=(batch,)))
        operations = traced.get_concrete_function(halves).graph.get_operations()
        for each in operations:
            if each.type == "MatMul":
                found[each.device[-5:]] = found.get(each.device[-5:], 0) + 1
        return found

    def compiled():
        model, _ = model_and_optimizer()
        with strategy.scope():
            model.compile("sgd", "mse", jit_compile=True)
        checkmate_tf.rematerialize(
            model, budget=0.85, solver="linearized_greedy", batch_size=1024, time_limit=5)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(x, x, batch_size=2048, epochs=1, verbose=0)
        codes = [getattr(each.message, "code", "") for each in caught]
        return {
            "said": codes.count("xla-left"),
            "planned": model.train_step.plan is not None,
            "on": bool(model.jit_compile),
            "restored": bool(checkmate_tf.restore(model).jit_compile),
        }

    print(json.dumps({
        "xla": compiled(),
        "fit": compared(fit),
        "gradients": compared(loop("gradients")),
        "update": compared(loop("update")),
        "whole": compared(loop("whole")),
        "central": central_storage(),
        "devices": devices(),
    }))
"""


@pytest.fixture(scope="module")
def on_replicas():
    """What a process with two devices has seen."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(REPLICAS)],
        env={
            **os.environ,
            "TF_ENABLE_ONEDNN_OPTS": "0",
            "TF_CPU_ALLOCATOR_USE_BFC": "true",
        },
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


FORMS = ["fit", "gradients", "update", "whole"]


@pytest.mark.parametrize("form", FORMS)
def test_replicas_train_with_the_bits_of_the_plain_step(on_replicas, form):
    assert on_replicas[form]["recomputed"] > 0
    assert on_replicas[form]["variables"] > 30
    assert on_replicas[form]["equal"]


@pytest.mark.parametrize("form", FORMS)
def test_replicas_keep_their_budgets_together(on_replicas, form):
    """Logical CPUs share an allocator: its peak is to be within the sum of the budgets."""
    seen = on_replicas[form]
    assert seen["peak"] <= seen["budgets"]


def test_where_xla_is_asked_for_replicas_train_without_it(on_replicas):
    """Keras' own step of several replicas is an error then, on CPUs at least."""
    assert on_replicas["xla"] == {"said": 1, "planned": True, "on": False, "restored": True}


def test_every_replica_computes_on_its_own_device(on_replicas):
    first, second = on_replicas["devices"].values()
    assert set(on_replicas["devices"]) == {"CPU:0", "CPU:1"}
    assert first == second > 0


def test_a_strategy_that_is_not_covered_is_refused_in_words(on_replicas):
    assert "CentralStorageStrategy" in on_replicas["central"]
    assert "MirroredStrategy" in on_replicas["central"]
