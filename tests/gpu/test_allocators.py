"""Budgets with each of TensorFlow's allocators for GPUs, as their users choose them."""

from __future__ import annotations

import pytest

from tests.gpu.processes import ran

SCRIPT = """
import json
import sys

import keras
import tensorflow as tf

import checkmate_tf
from checkmate_tf.devices.measure import run_measured
from tests.gpu.steps import loop_step

gpu = tf.config.list_physical_devices("GPU")[0]
if sys.argv[1] == "growth":
    tf.config.experimental.set_memory_growth(gpu, True)
elif sys.argv[1] == "limit":
    limited = tf.config.LogicalDeviceConfiguration(memory_limit=int(sys.argv[2]))
    tf.config.set_logical_device_configuration(gpu, [limited])

x = features = keras.Input((16,))
for _ in range(16):
    x = keras.layers.Dense(512, activation="relu")(x)
model = keras.Model(features, keras.layers.Dense(10)(x))
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
step = loop_step(model, keras.optimizers.SGD(0.1), loss_of)

batch = tf.zeros((8192, 16)), tf.zeros((8192,), tf.int32)

def peaks(function):
    try:
        return [run_measured(function, *batch, device="GPU:0")[1] for _ in range(4)]
    except tf.errors.ResourceExhaustedError:
        return None

planned = checkmate_tf.rematerialize(step, budget=0.65, time_limit=10, verbose=0)
within = peaks(planned)
plan = planned.plan
print(json.dumps({
    "budget": plan.budget,
    "notes": plan.notes,
    "within": within,
    "measured": plan.measured_peak,
    "plain": peaks(tf.function(step)),
}))
"""


@pytest.mark.parametrize("allocator", ["", "cuda_malloc_async"])
def test_an_allocator_that_was_told_to_grow_keeps_the_budget(allocator):
    seen = ran(SCRIPT, "growth", TF_FORCE_GPU_ALLOW_GROWTH="", TF_GPU_ALLOCATOR=allocator)
    assert seen["measured"] is not None
    assert max(seen["within"]) <= seen["budget"] < min(seen["plain"])


def test_under_a_limit_of_a_logical_device_only_the_planned_step_trains():
    seen = ran(SCRIPT, "limit", 230, TF_FORCE_GPU_ALLOW_GROWTH="")
    assert max(seen["within"]) <= seen["budget"] <= 230 << 20
    assert seen["plain"] is None
