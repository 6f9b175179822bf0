"""The code of docs/tradeoff.md runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import checkmate_tf
from tests.steps import random_batch, small_cnn

PAGE = Path(__file__).parents[2] / "docs" / "tradeoff.md"


def test_a_plan_of_the_curve_trains(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    [block] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    model = small_cnn()
    images, labels = (each.numpy() for each in random_batch(32))
    names = {"checkmate_tf": checkmate_tf, "model": model, "images": images, "labels": labels}
    exec(block, names)
    assert (tmp_path / "tradeoff.png").stat().st_size > 10_000
    assert "of plain" in capsys.readouterr().out
    assert names["model"].train_step.plan
