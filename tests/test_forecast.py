"""Forecasts of the allocator's peak, beside the allocator itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from statistics import median

import pytest

_TRAIN = """
import json, sys
import tensorflow as tf
from checkmate_tf.extraction import extract_step
from checkmate_tf.forecast import forecast
from checkmate_tf.measure import held_bytes, measure_peak, reserve
from checkmate_tf.rewriting import rewrite_extracted
from profiles.workspaces import MeasuredWorkspaces
from solvers import Schedule, solve
from tests.steps import random_batch, small_cnn

reserve(1 << 30)
model, data = small_cnn(side=64), random_batch(batch=32, side=64)
extracted = extract_step(
    tf.function(model.train_step).get_concrete_function(data), workspace=MeasuredWorkspaces()
)
found = []
for share in (1.0, 0.7):
    schedule = Schedule(range(len(extracted.graph)))
    if share < 1:
        schedule = solve(extracted.graph, share, time_limit=5, order="free").schedule
    step = rewrite_extracted(extracted, schedule)
    expected = forecast(extracted, schedule, held_bytes())
    peaks = [measure_peak(step, data) for _ in range(10)]
    found.append([expected.typical, expected.highest_of_ten, expected.worst, peaks])
json.dump(found, sys.stdout)
"""


@pytest.mark.parametrize("one_dnn", ["0", "1"])
def test_forecast_is_what_the_allocator_holds(one_dnn):
    environment = {
        **os.environ,
        "TF_ENABLE_ONEDNN_OPTS": one_dnn,
        "TF_CPU_ALLOCATOR_USE_BFC": "true",
    }
    ended = subprocess.run(
        [sys.executable, "-c", _TRAIN], env=environment, capture_output=True, text=True, check=True
    )
    for typical, highest, worst, peaks in json.loads(ended.stdout.splitlines()[-1]):
        assert typical == pytest.approx(median(peaks), rel=0.2)
        assert typical <= highest <= worst
        assert max(peaks) < 1.2 * worst
