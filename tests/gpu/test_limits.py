"""Training where the plain step does not fit: on a GPU of which TensorFlow may use a part."""

from __future__ import annotations

from functools import partial

import pytest

from tests.gpu.processes import ran

LIMIT = 3 << 30
"""Bytes of the part."""

_PART = f"""
import json
import os
import sys

import tensorflow as tf

LIMIT = {LIMIT}
part = tf.config.LogicalDeviceConfiguration(memory_limit=LIMIT >> 20)
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("GPU")[0], [part])

import checkmate_tf
from checkmate_tf.memory.device_size import device_bytes
from tests.gpu.steps import BATCH, CASES, GPU, Case, dense, fit, peaks_of, residual, rows

def exhausted(train):
    try:
        train()
    except tf.errors.ResourceExhaustedError:
        return True
    return False
"""

WITHOUT_XLA = """
case = Case(residual, 40)
model = case.compiled()
batch = tuple(map(tf.constant, case.data()))
budget = None if sys.argv[1] == "plain" else int(0.9 * LIMIT)
if budget is None:
    step = tf.function(model.train_step)
    ended = exhausted(lambda: peaks_of(step, batch))
else:
    step = checkmate_tf.rematerialize(model.train_step, budget=budget, time_limit=2)
    peaks = peaks_of(step, batch)
    plan = step.plan
"""

WITH_XLA = """
BATCH = 9 * BATCH
model = dense("auto")
budget = None if sys.argv[1] == "plain" else int(0.9 * LIMIT)
if budget is None:
    ended = exhausted(lambda: fit(model, *rows(2 * BATCH), BATCH))
else:
    checkmate_tf.rematerialize(model, budget=budget, time_limit=2)
    peaks = fit(model, *rows(2 * BATCH), BATCH).seen
    plan = model.train_step.plan
"""

_TOLD = """
told = {"exhausted": ended} if budget is None else {
    "size": device_bytes(),
    "compiled": plan.compiled_peak,
    "recomputed": len(plan.schedule) - len(plan.graph),
    "over": max(peaks) - budget,
}
print(json.dumps(told), flush=True)
os._exit(0)  # variables of a step that XLA has compiled and that was exhausted can't be freed
"""


@pytest.mark.parametrize("script", [WITHOUT_XLA, WITH_XLA], ids=["executor", "xla"])
def test_what_plain_does_not_fit_trains_by_a_plan(script):
    # As TensorFlow does by default: it takes the whole part when it starts.
    start = partial(ran, _PART + script + _TOLD, TF_FORCE_GPU_ALLOW_GROWTH="false")
    assert start("plain") == {"exhausted": True}
    seen = start("planned")
    assert seen["size"] == LIMIT
    assert seen["recomputed"] > 0
    assert seen["over"] <= 0
    assert (seen["compiled"] is not None) == (script is WITH_XLA)
