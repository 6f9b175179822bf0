"""A share counts from what the unchanged step holds when it runs, by the allocator's own count."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.device import Room
from checkmate_tf.devices.measure import held_bytes
from tests.dense_steps import SIZE, loss_and_gradient, some_weights
from tests.steps import noisy_question

if held_bytes() is None:
    pytest.skip("the allocator keeps no count", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("memory_in_one_piece")

SHARE = 0.75
"""Far from the least that is possible, for what is tested is not the plan."""
OPTIONS = {"budget": SHARE, "time_limit": 8}


@pytest.fixture
def step():
    return loss_and_gradient(some_weights(), depth=16)


def test_a_share_counts_from_the_measured_peak(step):
    """The step is a chain, so that threads can't change the order of its operations."""
    x = tf.ones((8192, SIZE))
    plain = tf.function(step)
    plain(x)
    held = held_bytes()
    peak = checkmate_tf.measure_peak(plain, x)
    kept = checkmate_tf.rematerialize(step, **OPTIONS)
    kept(x)
    plan = kept.plan
    activation = x.dtype.size * x.shape.num_elements()
    # Where the machine is busy, some buffers are let go late.
    assert plan.measured_baseline_peak - held == pytest.approx(peak - held, abs=5 * activation)
    added = plan.measured_baseline_peak - held
    assert plan.budget - held == pytest.approx(SHARE * added, abs=0.5 * activation)
    assert "(measured)" in str(plan).splitlines()[2]
    kept(x[:4000])
    assert kept.plan.measured_baseline_peak is None  # a smaller one does not count
    assert kept.plan.budget >= plan.budget  # though its own peak is half of that


def test_where_it_might_not_fit_the_forecast_counts_and_that_is_said(step, monkeypatch):
    x = tf.ones((4096, SIZE))
    limit = str((held_bytes() >> 20) + 14)
    monkeypatch.setenv("TF_CPU_BFC_MEM_LIMIT_IN_MB", limit)
    kept = checkmate_tf.rematerialize(step, **OPTIONS)
    kept(x)
    assert kept.plan.measured_baseline_peak is None
    assert any("peak is a forecast, for it might need" in note for note in kept.plan.notes)


def test_what_can_only_exhaust_the_memory_does_not_run(step, monkeypatch):
    """As on a GPU, which nothing but its own limit keeps from trying."""
    x = tf.ones((4096, SIZE))
    kind = type(current_device())
    monkeypatch.setattr(kind, "left", lambda self: None)
    monkeypatch.setattr(kind, "room", lambda self: Room(1 << 20, ()))
    kept = checkmate_tf.rematerialize(step, **OPTIONS)
    kept(x)
    assert kept.plan.measured_baseline_peak is None
    assert any("peak is a forecast, for it needs" in note for note in kept.plan.notes)


def test_a_step_that_draws_numbers_is_measured_and_misses_none():
    noisy, x, expected = noisy_question()
    kept = checkmate_tf.rematerialize(noisy, **OPTIONS)
    losses = [kept(x)[0].numpy() for _ in range(3)]
    assert kept.plan.measured_baseline_peak is not None
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
