"""The same script, started twice: the second process searches for nothing and tries nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import hashlib
import numpy as np
import checkmate_tf
from tests.steps import all_variables, random_batch, small_cnn

model = small_cnn(dropout=0.1, side=64)
step = checkmate_tf.rematerialize(
    model.train_step, budget=0.9, solver="linearized_greedy", time_limit=5
)
data = random_batch(32, side=64)
for _ in range(2):
    step(data)
if checkmate_tf.devices.measure.held_bytes() is not None and not step.plan.notes:
    assert checkmate_tf.measure_peak(step, data) <= step.plan.budget
digest = hashlib.sha256()
for each in all_variables(model):
    digest.update(np.asarray(each).tobytes())
print("bits", digest.hexdigest())
print("schedule", step.plan.schedule.steps)
print("phases", *sorted(step.plan.seconds))
"""


def start(folder, seed):
    """What the script prints, in a process whose sets have another order."""
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "CHECKMATE_TF_PLANS": str(folder), "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    [said] = re.findall(r"^checkmate_tf: .*MiB.*$|^checkmate_tf: .*KiB.*$", ended.stderr, re.M)
    return said, dict(line.split(" ", 1) for line in ended.stdout.splitlines())


def test_the_second_start_takes_the_first_ones_plan(tmp_path):
    said, first = start(tmp_path, "1")
    assert said.endswith("plan kept")
    assert first["phases"] == "emit extract solve trace trials"
    said, second = start(tmp_path, "2")
    assert said.endswith("by a plan kept before")
    assert second == {**first, "phases": "emit extract trace"}
