"""Another process holds most of the GPU: what it leaves is what a step has.

Most of the time here TensorFlow waits: for ten seconds, whenever memory has run out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gpu.processes import ran

LEFT = 5 << 30
OF_TENSORFLOW = 1800 << 20
"""So much of what is free on such a GPU TensorFlow leaves to others."""

HOLDER = f"""
import ctypes

driver = ctypes.CDLL("libcuda.so.1")
gpu, context, start = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
free, total = ctypes.c_size_t(), ctypes.c_size_t()
assert not driver.cuInit(0)
assert not driver.cuDeviceGet(ctypes.byref(gpu), 0)
assert not driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), gpu)
assert not driver.cuCtxSetCurrent(context)
assert not driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
assert not driver.cuMemAlloc_v2(ctypes.byref(start), ctypes.c_size_t(free.value - {LEFT}))
print("held", flush=True)
input()
"""

TRAINER = """
import json

import keras
import tensorflow as tf

import checkmate_tf
from checkmate_tf.devices.measure import run_measured
from tests.gpu.steps import loop_step

BATCH, WIDTH, LAYERS = 32768, 1024, 32
x = features = keras.Input((16,))
for _ in range(LAYERS):
    x = keras.layers.Dense(WIDTH, activation="relu")(x)
model = keras.Model(features, keras.layers.Dense(10)(x))
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
step = loop_step(model, keras.optimizers.SGD(0.1), loss_of)

batch = tf.zeros((BATCH, 16)), tf.zeros((BATCH,), tf.int32)
planned = checkmate_tf.rematerialize(step, budget=0.9, time_limit=10, verbose=0)
peaks = [run_measured(planned, *batch, device="GPU:0")[1] for _ in range(3)]
plan = planned.plan
print(json.dumps({"plain": plan.measured_baseline_peak, "budget": plan.budget, "peaks": peaks}))
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Path]:
    """By which the stand-in knows of the other process; a real GPU needs none."""
    path = tmp_path / "ledger"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "STAND_IN_LEDGER": str(path)},
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        yield path
        holder.communicate("\n")


def test_a_plan_takes_what_another_process_leaves_though_its_budget_is_more(ledger):
    seen = ran(TRAINER, STAND_IN_LEDGER=ledger)
    assert seen["plain"] is None  # it exhausted the GPU
    assert max(seen["peaks"]) <= LEFT - OF_TENSORFLOW < seen["budget"]
