"""What the demo asks for and shows; that it trains is tried in tests/whole/test_end_to_end.py."""

from __future__ import annotations

import pytest

from checkmate_tf.cli import demo
from checkmate_tf.cli.main import main
from checkmate_tf.workloads.trial import describe_plan
from tests.checkmate_tf.plans.test_pictures import plan_of

MEBIBYTE = 1 << 20
PLAIN = {"resident": 100 * MEBIBYTE, "peaks": [300 * MEBIBYTE] * 4}
OURS = {"resident": 100 * MEBIBYTE, "peaks": [190 * MEBIBYTE] * 4, "plan": describe_plan(plan_of())}
TRAINED = {"exhausted": False, "losses": [2.5, 2.0, 1.5, 1.0], "seconds": [0.5, 0.1, 0.1, 0.1]}


@pytest.fixture
def without_a_plan():
    """Budgets that no plan keeps."""
    return []


@pytest.fixture
def asked(monkeypatch, without_a_plan):
    """Limits and budgets of trials that are not made: the plain step holds 300 MiB, ours 190."""
    asked = []

    def run_trial(model, steps, budget=None, limit_bytes=None, **options):
        asked.append((budget, limit_bytes))
        if budget in without_a_plan:
            return {"too_small": True}
        figures = PLAIN if budget is None else OURS
        if limit_bytes is not None and max(figures["peaks"]) > limit_bytes:
            return {"exhausted": True}
        return {**TRAINED, **figures}

    monkeypatch.setattr(demo, "run_trial", run_trial)
    return asked


def test_the_limit_lies_between_what_both_hold(asked, tmp_path, capsys):
    picture = tmp_path / "demo.png"
    assert main(["demo", "--quick", "--picture", str(picture)]) == 0
    budget, limit = 200 * MEBIBYTE, 245 * MEBIBYTE
    assert asked == [(None, None), (budget, None), (None, limit), ("device", limit)]
    shown = capsys.readouterr().out
    assert [each in shown for each in ("300.0 MiB", "190.0 MiB", "245.0 MiB")] == [True] * 3
    assert shown.count("ResourceExhaustedError") == 1
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_budget_that_was_not_kept_is_told_by_the_status(asked, tmp_path, monkeypatch):
    monkeypatch.setitem(OURS, "peaks", [210 * MEBIBYTE] * 4)
    assert main(["demo", "--quick", "--picture", str(tmp_path / "demo.png")]) == 1


def test_a_training_without_a_plan_is_told(asked, without_a_plan, tmp_path, capsys):
    without_a_plan.append("device")
    assert main(["demo", "--quick", "--picture", str(tmp_path / "demo.png")]) == 1
    assert "no plan found" in capsys.readouterr().out
    without_a_plan.append(200 * MEBIBYTE)
    assert main(["demo", "--quick", "--picture", str(tmp_path / "demo.png")]) == 2
    assert "no plan found" in capsys.readouterr().err
