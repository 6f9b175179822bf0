"""The code of the README runs as it stands, on a small model and a small graph."""

from __future__ import annotations

import re
from pathlib import Path

import tensorflow as tf

from checkmate_tf.step import RematerializedStep
from tests.dense_steps import dense_model, loss_and_gradient, numbers, some_weights
from tests.graphs import SKIP

README = Path(__file__).parent.parent / "README.md"


def blocks(word: str) -> str:
    """All blocks of Python in which `word` occurs, as one."""
    found = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    return "\n".join(each for each in found if word in each)


def test_budgets_on_models_and_functions(capsys):
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    images, labels = numbers(64)
    step = loss_and_gradient(some_weights())
    names = {
        "model": model,
        "images": images,
        "labels": labels,
        "my_train_step": lambda images, labels: step(images),
    }
    exec(blocks("checkmate_tf.rematerialize"), names)
    assert "peak, this plan" in capsys.readouterr().out
    assert isinstance(names["step"], RematerializedStep)
    assert names["step"].plan is not None
    assert tf.math.is_finite(names["loss"])
    assert isinstance(names["Classifier"]().train_step, RematerializedStep)
    assert not isinstance(model.train_step, RematerializedStep)


def test_saved_graphs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    SKIP.save("graph.json")
    exec(blocks("ComputationGraph.load"), {})
    assert "optimal" in capsys.readouterr().out
