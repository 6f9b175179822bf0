"""The pure parts of `experiments.cost_models`, and one small row."""

from __future__ import annotations

from itertools import pairwise

import pytest
from rich.console import Console

from experiments.cost_models import _PREDICTIONS, _interleaved, as_table, measure_row


@pytest.mark.parametrize("count", [3, 12, 100, 500])
def test_timed_runs_lie_evenly_between_the_others(count):
    order: list[object] = []
    seconds: dict[str, list[float]] = {"a": [], "b": []}
    runs = {"a": lambda: order.append("step"), "b": lambda: None}
    for each in _interleaved(runs, seconds)(range(count)):
        order.append(each)
    assert [each for each in order if each != "step"] == list(range(count))
    assert order.count("step") == len(seconds["a"]) == len(seconds["b"])
    assert min(count, 12) <= len(seconds["a"]) <= 24
    places = [place for place, each in enumerate(order) if each == "step"]
    gaps = {after - before for before, after in pairwise(places)}
    assert len(gaps) == 1


@pytest.mark.slow
def test_a_row_of_a_small_model(tmp_path, monkeypatch):
    monkeypatch.setenv("CHECKMATE_TF_CACHE", str(tmp_path))
    row = measure_row("U-Net", side=16)
    assert row["fastest"] <= row["measured"] <= row["slowest"]
    assert row["not in the profile"] < 0.01 * row["operations"]
    # Arithmetic alone leaves out traffic and launches.
    assert row["flops"] < row["roofline"]
    console = Console(width=80, record=True)
    console.print(as_table([{"one_dnn": True, **row}]))
    assert f"{row['profile'] / row['measured']:.2f}" in console.export_text()


def test_the_table_breaks_no_word():
    sizes = dict.fromkeys(["measured", "rewritten", *_PREDICTIONS], 12.345)
    row = {"model": "EfficientNetB0", "one_dnn": False, **sizes}
    console = Console(width=80, record=True)
    console.print(as_table([{**row, "not in the profile": 1234, "survey_seconds": 1234.5}]))
    words = console.export_text().split()
    for word in ("oneDNN", "plain", "roofline", "calibrated", "profile", "EfficientNetB0", "1234"):
        assert word in words
