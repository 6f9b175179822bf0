"""A plan that one process makes and keeps, and a second one finds: within the budget in both."""

from __future__ import annotations

import pytest

from tests.gpu.processes import ran

_FIT = """
import json
import sys

import checkmate_tf
from tests.gpu.steps import BATCH, dense, fit, rows

jit_compile = sys.argv[1] == "True"
model = dense(jit_compile)
checkmate_tf.rematerialize(model, budget=0.75, time_limit=2)
batch = 8 * BATCH if jit_compile else BATCH
peaks = fit(model, *rows(2 * batch), batch)
plan = model.train_step.plan
print(json.dumps({
    "peaks": peaks.warm,
    "budget": plan.budget,
    "schedule": list(plan.schedule.steps),
    "nodes": len(plan.graph),
    "phases": sorted(plan.seconds),
}))
"""


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_second_process_trains_by_the_same_plan(jit_compile, tmp_path):
    folders = {"CHECKMATE_TF_PLANS": tmp_path / "plans", "CHECKMATE_TF_CACHE": tmp_path}
    first, again = (ran(_FIT, jit_compile, **folders) for _ in range(2))
    assert len(first["schedule"]) > first["nodes"]
    assert again["schedule"] == first["schedule"]
    assert again["budget"] == pytest.approx(first["budget"], rel=1e-4)  # a scalar more is held
    assert "solve" in first["phases"]
    assert "solve" not in again["phases"]
    for start in (first, again):
        assert max(start["peaks"]) <= start["budget"]
