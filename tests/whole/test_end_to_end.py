"""Whole experiments in processes of their own: bits, limits, pictures."""

from __future__ import annotations

import numpy as np
import pytest

from checkmate_tf.cli.main import main
from checkmate_tf.workloads.trial import run_trial
from experiments.step_benchmark import distance

pytestmark = pytest.mark.slow


def variables(path):
    with np.load(path) as saved:
        return [saved[key] for key in saved.files]


@pytest.mark.parametrize("one_dnn", [False, True])
def test_same_bits(tmp_path, one_dnn):
    """Three steps of a real model, plain and rematerialized, with graph fusions off.

    The least budget, not a share of what the plain step took: beside busy processes that took so
    much more that nothing had to be recomputed for half of it.
    """
    options = {"side": 64, "batch": 8, "exact": True, "one_dnn": one_dnn}
    plain = run_trial("MobileNetV2", 3, save=tmp_path / "plain.npz", **options)
    path = tmp_path / "ours.npz"
    ours = run_trial("MobileNetV2", 3, budget="min", save=path, time_limit=10, **options)
    assert ours["plan"]["recomputations"] > 0
    assert ours["losses"] == plain["losses"]
    for one, other in zip(variables(path), variables(tmp_path / "plain.npz"), strict=True):
        assert np.array_equal(one, other)


def test_float64_agrees_with_default_options(tmp_path):
    options = {"side": 64, "batch": 4, "float64": True}
    plain = run_trial("U-Net", 3, save=tmp_path / "plain.npz", **options)
    budget = int(plain["resident"] + 0.7 * (max(plain["peaks"]) - plain["resident"]))
    path = tmp_path / "ours.npz"
    run_trial("U-Net", 3, budget=budget, save=path, time_limit=10, **options)
    assert distance(variables(tmp_path / "plain.npz"), variables(path)) < 1e-9


def test_demo(tmp_path, capsys):
    picture = tmp_path / "demo.png"
    assert main(["demo", "--quick", "--picture", str(picture)]) == 0
    output = capsys.readouterr().out
    assert output.count("ResourceExhaustedError") == 1
    assert "trained 4 steps" in output
    assert picture.read_bytes().startswith(b"\x89PNG")
    shown = output.replace(str(picture), "demo.png")
    assert max(map(len, shown.splitlines())) <= 80
