"""Training where the plain step does not fit: on a GPU of which TensorFlow may use a part."""

from __future__ import annotations

import pytest

from tests.gpu.processes import ran

LIMIT = 3 << 30
"""Bytes of the part."""

_TRAINED = f"""
import json
import os
import sys

import tensorflow as tf

LIMIT = {LIMIT}
part = tf.config.LogicalDeviceConfiguration(memory_limit=LIMIT >> 20)
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("GPU")[0], [part])

import checkmate_tf
from checkmate_tf.devices.current import current_device
from tests.gpu.steps import BATCH, dense, fit, rows

start, jit_compile, parts = sys.argv[1], sys.argv[2] == "True", int(sys.argv[3])
batch = parts * BATCH
model = dense(jit_compile)
if start == "plain":
    try:
        fit(model, *rows(2 * batch), batch)
        told = "trained"
    except tf.errors.ResourceExhaustedError:
        told = "exhausted"
else:
    budget = int(0.9 * LIMIT) if start == "planned" else LIMIT
    asked = dict(budget=budget) if start == "planned" else dict()
    checkmate_tf.rematerialize(model, time_limit=2, **asked)
    peaks = fit(model, *rows(2 * batch), batch)
    plan = model.train_step.plan
    told = {{
        "size": current_device().size(),
        "compiled": plan.compiled_peak is not None,
        "recomputed": len(plan.schedule) - len(plan.graph),
        "over": max(peaks.warm) - budget,
        "budget": plan.budget,
    }}
print(json.dumps(told), flush=True)
os._exit(0)  # TensorFlow can't free the variables of a step of XLA's that was exhausted
"""


@pytest.mark.parametrize("jit_compile", [False, True])
def test_what_plain_does_not_fit_trains_by_a_plan(jit_compile):
    # As TensorFlow does by default: it takes the whole part when it starts.
    environment = {"TF_FORCE_GPU_ALLOW_GROWTH": "false"}
    parts = 9 if jit_compile else 10
    assert ran(_TRAINED, "plain", jit_compile, parts, **environment) == "exhausted"
    seen = ran(_TRAINED, "planned", jit_compile, parts, **environment)
    assert seen["size"] == LIMIT
    assert seen["compiled"] == jit_compile
    assert seen["recomputed"] > 0
    assert seen["over"] <= 0


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("parts", [6, 10])
def test_without_a_budget_it_is_what_the_device_can_hold(jit_compile, parts):
    """What fits runs unchanged, and what does not trains by a plan."""
    environment = {"TF_FORCE_GPU_ALLOW_GROWTH": "false"}
    fits = ran(_TRAINED, "plain", jit_compile, parts, **environment) == "trained"
    seen = ran(_TRAINED, "device", jit_compile, parts, **environment)
    assert seen["budget"] == LIMIT
    assert seen["compiled"] == jit_compile
    assert seen["over"] <= 0
    assert (seen["recomputed"] == 0) == fits
