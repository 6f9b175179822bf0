"""oneDNN's allocator for CPUs counts no small buffers: budgets and plans count all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LAYERS, SIDE = 60, 160

STEP = f"""
import json, sys, tensorflow as tf, checkmate_tf
from checkmate_tf.devices.measure import counts_small_buffers

weights = tf.Variable(tf.eye({SIDE}))
given = tf.ones(({SIDE}, {SIDE}))

def step(given):
    x = given
    with tf.GradientTape() as tape:
        tape.watch(given)
        for _ in range({LAYERS}):
            x = tf.sin(x @ weights)
        loss = tf.reduce_sum(x)
    return loss, tape.gradient(loss, given)
"""

PLANNED = """
step = checkmate_tf.rematerialize(step, budget=0.5, time_limit=5)
step(given)
plan = step.plan
plan.save(sys.argv[1])
print(json.dumps({
    "counts": counts_small_buffers(), "budget": plan.budget, "fixed": plan.graph.fixed_bytes,
    "recomputations": len(plan.schedule) - len(plan.graph), "notes": plan.notes,
}))
"""

BY_THAT_PLAN = """
step = checkmate_tf.rematerialize(step, plan=sys.argv[1], trial_run=False)
print(json.dumps([checkmate_tf.measure_peak(step, given) for _ in range(5)]))
"""


def result_of(script: str, counts: bool, plan: Path) -> Any:
    """What a script prints in a process whose allocator counts all buffers, or large ones only."""
    settings = {"TF_ENABLE_ONEDNN_OPTS": "1", "TF_CPU_ALLOCATOR_USE_BFC": str(counts).lower()}
    ended = subprocess.run(
        [sys.executable, "-c", STEP + script, plan],
        env={**os.environ, **settings, "PYTHONPATH": str(ROOT), "CHECKMATE_TF_PLANS": "off"},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.parametrize("counts", [True, False])
def test_a_share_of_small_buffers(counts: bool, tmp_path: Path) -> None:
    found = result_of(PLANNED, counts, tmp_path / "plan.json")
    assert found["counts"] == counts
    assert found["recomputations"] > 0
    # At least one value a layer is kept for the gradient, at most two; threads let a few more be.
    kept = LAYERS * 4 * SIDE * SIDE
    assert 0.45 * kept < found["budget"] - found["fixed"] < 1.4 * kept
    assert any("below 256 KiB" in note for note in found["notes"]) == (not counts)
    peaks = result_of(BY_THAT_PLAN, True, tmp_path / "plan.json")
    assert max(peaks) <= found["budget"]
