"""The code of docs/plans.md runs as it stands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import tensorflow as tf

import checkmate_tf
from tests.dense_steps import QUICK, loss_and_gradient, numbers, some_weights

PAGE = Path(__file__).parents[2] / "docs" / "plans.md"


def test_plans_by_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    inner = loss_and_gradient(some_weights())
    images, labels = numbers(64)
    names = {
        "checkmate_tf": checkmate_tf,
        "images": images,
        "labels": labels,
        "my_train_step": lambda images, labels: inner(images),
    }
    names["step"] = checkmate_tf.rematerialize(names["my_train_step"], **QUICK)
    names["step"](images, labels)
    exec("\n".join(blocks), names)
    assert tf.math.is_finite(names["loss"])
    assert names["plan"].schedule == checkmate_tf.Plan.load("plan.json").schedule
    assert names["document"] == json.loads((tmp_path / "plan.json").read_text())
    assert (tmp_path / "plan.png").stat().st_size > 10_000
