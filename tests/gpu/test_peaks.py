"""Models at the sizes that people train at: every step within its budget, and near its forecast."""

from __future__ import annotations

import warnings

import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.planning.question import Question
from tests.costs import sweep
from tests.gpu.steps import CASES, peaks_of
from tests.messages import codes

SCATTER = 1.01
"""Seen: 0.14 % over the budget, of a GPT."""

PLAIN_ERROR = (-0.18, 0.05)
"""How far the forecast of a plain step may be off, as a share of its peak."""

HIGHEST_ERROR, LOWEST_ERROR = -0.25, 0.03
"""The same for a plan: how far below the peak of five steps the highest forecast for ten may lie,
and how far above it the lowest one. Seen: −12 % of a plain U-Net, which runs several operations at
once, and of plans −3.5 to 3.5 %; on a busy machine, which begins operations in other orders, −13 %
of a GPT's and −15 % of a ResNet50's. Of convolutions TensorFlow lays out the images anew for a GPU,
which takes copies that no forecast knows: −14 %. Trial runs make up for all of it."""


@pytest.fixture
def forecasts(monkeypatch):
    """What was forecast of every schedule, before a trial run corrected it."""
    made = {}

    def noting(self, schedule, forecast=Question.forecast):
        made[schedule] = forecast(self, schedule)
        return made[schedule]

    monkeypatch.setattr(Question, "forecast", noting)
    return made


@pytest.mark.parametrize("name", sweep(CASES, quick=5))
def test_every_step_is_within_its_budget(name, forecasts):
    """Or a little over it, where operations run in another order than in the trial; it says so."""
    case = CASES[name]
    model = case.compiled()
    batch = tuple(map(tf.constant, case.data()))
    plain = peaks_of(tf.function(model.train_step), batch, steps=3)[1:]
    ours = checkmate_tf.rematerialize(model.train_step, budget=case.share, time_limit=2)
    peaks = peaks_of(ours, batch, steps=1)
    plan = ours.plan
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        peaks += peaks_of(ours, batch, steps=4)
    assert len(plan.schedule) > len(plan.graph)
    assert max(peaks) <= SCATTER * plan.budget < min(plain)
    assert sum(peak > plan.budget for peak in peaks[1:]) <= len(said)
    assert set(codes(said)) <= {"over-budget-planned-again"}
    assert PLAIN_ERROR[0] <= plan.baseline_peak / min(plain) - 1 <= PLAIN_ERROR[1]
    forecast = forecasts[plan.schedule]
    assert forecast.highest_of_ten / max(peaks) - 1 >= HIGHEST_ERROR
    assert min(forecast.peaks) / max(peaks) - 1 <= LOWEST_ERROR
