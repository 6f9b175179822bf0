"""Budgets on a GPU, where kernels are tried in the first step of a process.

Skipped where TensorFlow sees none. Each start is a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import tensorflow as tf

pytestmark = pytest.mark.skipif(
    not tf.config.list_physical_devices("GPU"), reason="no GPU on this machine"
)

_NETWORK = """
import json
import sys

import keras
import numpy as np
import tensorflow as tf

import checkmate_tf
from checkmate_tf.memory.measure import run_measured

BATCH, SIDE, STEPS, DEVICE = 64, 64, 8, "GPU:0"
keras.utils.set_random_seed(0)
images = x = keras.Input((SIDE, SIDE, 3))
for _ in range(6):
    x = keras.layers.Conv2D(32, 3, padding="same", activation="relu")(x)
model = keras.Model(images, keras.layers.Dense(10)(keras.layers.GlobalAveragePooling2D()(x)))
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
x = np.zeros((STEPS * BATCH, SIDE, SIDE, 3), np.float32)
y = np.zeros(STEPS * BATCH, np.int64)


def told(plan, peaks):
    json.dump({
        "budget": plan.budget,
        "plain": plan.measured_baseline_peak,
        "fixed": plan.graph.fixed_bytes,
        "first": plan.first_peak,
        "tried": plan.measured_peak,
        "peaks": peaks,
    }, sys.stdout)
"""

LOOP = """
optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
optimizer.build(model.trainable_variables)

@checkmate_tf.rematerialize(budget=0.7)
def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss

peaks = []
for one in tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH, True):
    peaks.append(run_measured(step, *one, device=DEVICE)[1])
told(step.plan, peaks)
"""

FIT = """
class Peaks(keras.callbacks.Callback):
    seen = []

    def on_train_batch_begin(self, batch, logs=None):
        tf.config.experimental.reset_memory_stats(DEVICE)

    def on_train_batch_end(self, batch, logs=None):
        self.seen.append(tf.config.experimental.get_memory_info(DEVICE)["peak"])

model.compile("adam", loss_of, metrics=["accuracy"], jit_compile=False)
checkmate_tf.rematerialize(model, budget=0.7)
model.fit(x, y, batch_size=BATCH, verbose=0, callbacks=[Peaks()])
told(model.train_step.plan, Peaks.seen[1:])  # during the first batch it is planned
"""

ON_THE_CPU = f"""
DEVICE = "CPU:0"
with tf.device(DEVICE):
    model = keras.models.clone_model(model)
    {LOOP.strip().replace(chr(10), chr(10) + "    ")}
"""


def start(script, plans="off"):
    """What a process says of its plan and its steps."""
    ended = subprocess.run(
        [sys.executable, "-c", _NETWORK + script],
        env={**os.environ, "CHECKMATE_TF_PLANS": str(plans)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_every_start_has_the_same_budget_and_every_step_keeps_it(tmp_path):
    starts = [start(LOOP, tmp_path / "plans") for _ in range(2)]
    starts.append(start(LOOP))
    first, again = starts[:2]
    assert first["first"] is not None
    assert again["first"] > again["tried"] == first["tried"]
    budgets = [each["budget"] for each in starts]
    assert max(budgets) < 1.01 * min(budgets)
    for each in starts:
        assert max(each["peaks"]) <= each["budget"] < each["plain"]


def test_slots_that_fit_makes_while_it_traces_are_counted():
    seen = start(FIT)
    assert max(seen["peaks"]) <= seen["budget"] < seen["plain"]


def test_under_a_scope_for_the_cpu_its_memory_is_planned():
    seen = start(ON_THE_CPU)
    assert seen["first"] is None
    assert seen["fixed"] < seen["budget"] < seen["plain"]
    assert max(seen["peaks"]) <= seen["budget"]
