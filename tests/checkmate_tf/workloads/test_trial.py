"""A training trial in this process; whole ones, in processes of their own, are `slow`."""

from __future__ import annotations

import json
import sys
from functools import partial

import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.workloads import models, trial
from checkmate_tf.workloads.data import batches_of
from checkmate_tf.workloads.models import Workload, compiled, gpt, residual, unet
from solvers import BudgetError
from tests.checkmate_tf.plans.test_pictures import plan_of

TINY = Workload(partial(residual, blocks=1, width=8), batch=4, side=16)


@pytest.fixture
def figures_of(tmp_path, monkeypatch):
    """The figures that a trial of a tiny model writes."""
    if held_bytes() is None:
        pytest.skip("the allocator keeps no count")
    monkeypatch.setitem(models.ALL_WORKLOADS, "tiny", TINY)

    def run(*arguments):
        output = tmp_path / "figures.json"
        command = ["trial", "--model", "tiny", "--steps", "2", "--output", str(output)]
        monkeypatch.setattr(sys, "argv", [*command, *arguments])
        assert trial.main() == 0
        return json.loads(output.read_text(encoding="utf-8"))

    return run


def test_the_plain_step_and_ours_lose_alike(figures_of, tmp_path):
    plain = figures_of("--save", str(tmp_path / "plain.npz"))
    ours = figures_of(
        "--budget",
        "min",
        "--time-limit",
        "1",
        "--costs",
        "roofline",
        "--save",
        str(tmp_path / "ours.npz"),
    )
    assert len(ours["losses"]) == len(ours["peaks"]) == 2
    assert ours["losses"] == pytest.approx(plain["losses"], rel=1e-3)
    assert ours["plan"]["recomputations"] > 0
    assert "plan" not in plain
    with np.load(tmp_path / "plain.npz") as one, np.load(tmp_path / "ours.npz") as other:
        assert len(one.files) == len(other.files) > 10
        for key in one.files:
            np.testing.assert_allclose(one[key], other[key], rtol=2e-2, atol=1e-3)


def test_times_are_those_of_steps_in_turn():
    """The first round warms up and does not count."""
    calls = []
    steps = {
        name: lambda batch, name=name: calls.append((name, batch)) or {"loss": 0.0}
        for name in ("plain", "ours")
    }
    seconds = trial.alternate(steps, ["a", "b"], 2)
    assert {name: len(each) for name, each in seconds.items()} == {"plain": 2, "ours": 2}
    assert calls == [(name, batch) for batch in "aba" for name in ("plain", "ours")]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (tf.errors.ResourceExhaustedError(None, None, "no room"), trial.EXHAUSTED),
        (BudgetError("budget-too-small", "too small"), trial.TOO_SMALL),
    ],
)
def test_an_end_without_figures_has_a_status(tmp_path, error, status):
    def train():
        raise error

    assert trial.write_figures(train, tmp_path / "figures.json") == status
    assert list(tmp_path.iterdir()) == []


def test_a_limit_is_given_to_the_allocator_in_whole_mebibytes():
    environment = trial.trial_environment(limit_bytes=(5 << 20) + 7, one_dnn=False)
    assert environment["TF_CPU_BFC_MEM_LIMIT_IN_MB"] == "5"
    assert environment["TF_ENABLE_ONEDNN_OPTS"] == "0"
    assert "TF_CPU_BFC_MEM_LIMIT_IN_MB" not in trial.trial_environment()


def test_figures_of_a_plan_can_be_kept():
    plan = plan_of()
    told = json.loads(json.dumps(trial.describe_plan(plan)))
    assert told["recomputations"] == len(plan.schedule) - len(plan.graph)
    assert len(told["timeline"]) == len(plan.schedule)


@pytest.mark.parametrize(
    "workload",
    [
        Workload(unet, 2, 16, kind="pixels"),
        Workload(partial(gpt, blocks=1, width=16), 2, 8, kind="text", optimizer="adam"),
    ],
)
def test_a_model_takes_the_data_of_its_kind(workload):
    model = compiled(workload)
    (inputs, labels), _ = batches_of(workload, 2, workload.batch, workload.side)
    assert model(inputs).shape[:-1] == labels.shape
    assert int(tf.reduce_max(labels)) < model.output_shape[-1]
    assert model.optimizer.variables
