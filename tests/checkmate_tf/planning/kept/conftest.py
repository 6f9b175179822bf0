"""A small step, a folder for its plans, and what is counted while it is planned."""

from __future__ import annotations

import pytest
import tensorflow as tf

from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.planning import baseline, planner
from tests.checkmate_tf.planning.kept.starts import DEPTH
from tests.dense_steps import SIZE, loss_and_gradient, some_weights
from tests.memory import memory_in_one_piece


@pytest.fixture(scope="module", autouse=True)
def _one_piece():
    """What earlier modules have left is none of these steps' memory."""
    with memory_in_one_piece():
        yield


@pytest.fixture(scope="module")
def step():
    return loss_and_gradient(some_weights(), DEPTH)


@pytest.fixture(scope="module")
def x():
    return tf.ones((2048, SIZE))


@pytest.fixture
def searches(monkeypatch):
    """How often a plan was searched for, and the unchanged step was run for trial."""
    seen = []

    def noted(module, name):
        before = getattr(module, name)

        def note(*args, **kwargs):
            seen.append(name)
            return before(*args, **kwargs)

        monkeypatch.setattr(module, name, note)

    noted(planner, "PlanSearch")
    noted(baseline, "run_unchanged")
    return seen


@pytest.fixture
def counted():
    if held_bytes() is None:
        pytest.skip("the allocator keeps no count")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where plans are kept."""
    monkeypatch.setenv("CHECKMATE_TF_PLANS", str(tmp_path / "plans"))
    return tmp_path / "plans"
