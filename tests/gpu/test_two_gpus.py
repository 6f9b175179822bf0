"""A step of two replicas, each on a GPU of its own, keeps its budget on both."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.gpu import is_stand_in
from tests.gpu.processes import ran

SCRIPT = """
import json

import keras
import tensorflow as tf

import checkmate_tf
from tests.gpu.steps import loop_step

BATCH, STEPS = 2048, 8
DEVICES = [each.name.rpartition("device:")[2] for each in tf.config.list_logical_devices("GPU")][:2]
strategy = tf.distribute.MirroredStrategy(DEVICES)
with strategy.scope():
    x = images = keras.Input((64,))
    for _ in range(16):
        x = keras.layers.Dense(256, activation="relu")(x)
    model = keras.Model(images, keras.layers.Dense(10)(x))
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
    replica_step = loop_step(model, keras.optimizers.SGD(0.1), loss_of)

def step(x, y):
    return strategy.run(replica_step, (x, y))

x, y = tf.zeros((2 * BATCH, 64)), tf.zeros((2 * BATCH,), tf.int32)
data = tf.data.Dataset.from_tensors((x, y)).repeat(STEPS)
batches = list(strategy.experimental_distribute_dataset(data))

def peaks(function):
    highest = []
    for batch in batches:
        for device in DEVICES:
            tf.config.experimental.reset_memory_stats(device)
        function(*batch)
        for device in DEVICES:
            with tf.device(device):
                tf.raw_ops.SyncDevice()
        highest.append([tf.config.experimental.get_memory_info(each)["peak"] for each in DEVICES])
    return highest

plain = peaks(tf.function(step))[1:]
planned = checkmate_tf.rematerialize(step, budget=0.7, time_limit=10, verbose=0)
planned(*batches[0])
within = peaks(planned)
plan = planned.plan
print(json.dumps({
    "budget": plan.budget,
    "recomputed": len(plan.schedule) - len(plan.graph),
    "notes": plan.notes,
    "plain": plain,
    "within": within,
}))
"""


def test_both_gpus_keep_the_budget_that_the_plain_step_exceeds_on_both():
    if not is_stand_in() and len(tf.config.list_physical_devices("GPU")) < 2:
        pytest.skip("there is one GPU")
    seen = ran(SCRIPT, STAND_IN_COUNT=2)
    assert seen["recomputed"] > 0
    assert not seen["notes"]
    for of_device in zip(*seen["within"], strict=True):
        assert max(of_device) <= seen["budget"]
    for of_device in zip(*seen["plain"], strict=True):
        assert min(of_device) > seen["budget"]
