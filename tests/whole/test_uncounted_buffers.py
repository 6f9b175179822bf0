"""oneDNN's allocator for CPUs counts no small buffers: a share still counts from all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAYERS, SIDE = 60, 160

SCRIPT = f"""
import json, tensorflow as tf, checkmate_tf
from checkmate_tf.memory.measure import counts_small_buffers

weights = tf.Variable(tf.eye({SIDE}))

def step(given):
    x = given
    with tf.GradientTape() as tape:
        tape.watch(given)
        for _ in range({LAYERS}):
            x = tf.sin(x @ weights)
        loss = tf.reduce_sum(x)
    return loss, tape.gradient(loss, given)

step = checkmate_tf.rematerialize(step, budget=0.5, time_limit=5)
step(tf.ones(({SIDE}, {SIDE})))
plan = step.plan
print(json.dumps({{
    "counts": counts_small_buffers(), "budget": plan.budget, "fixed": plan.graph.fixed_bytes,
    "recomputations": len(plan.schedule) - len(plan.graph), "notes": plan.notes,
}}))
"""


@pytest.mark.parametrize("counts", [True, False])
def test_a_share_of_small_buffers(counts, tmp_path):
    settings = {"TF_ENABLE_ONEDNN_OPTS": "1", "TF_CPU_ALLOCATOR_USE_BFC": str(counts).lower()}
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ended = subprocess.run(
        [sys.executable, script],
        env={**os.environ, **settings, "PYTHONPATH": str(ROOT), "CHECKMATE_TF_PLANS": "off"},
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(ended.stdout.splitlines()[-1])
    assert found["counts"] == counts
    assert found["recomputations"] > 0
    # At least one value a layer is kept for the gradient, at most two; threads let a few more be.
    kept = LAYERS * 4 * SIDE * SIDE
    assert 0.45 * kept < found["budget"] - found["fixed"] < 1.4 * kept
    assert any("below 256 KiB" in note for note in found["notes"]) == (not counts)
