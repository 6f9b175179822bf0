"""The pure parts of `experiments.predictions`."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure
from rich.console import Console

from experiments import predictions
from experiments.predictions import (
    as_table,
    draw,
    peak_error,
    ratios,
    read_rows,
    summary,
    write_rows,
)

KEPT = {
    "model": "U-Net", "one_dnn": 1, "share": 0.75, "budget": 200_000_000, "peak": 150_000_000,
    "predicted_peak": 153_000_000, "extra": 0.1, "predicted_extra": 0.04, "plain_seconds": 0.5,
    "ready": 20.0,
}  # fmt: skip
OVER = {**KEPT, "one_dnn": 0, "budget": 140_000_000, "predicted_peak": 135_000_000, "extra": 0.06}
TOO_SMALL = {"model": "VGG16", "one_dnn": 1, "share": 0.5, "budget": 100_000_000}


def test_rows_survive_the_file(tmp_path):
    path = tmp_path / "new" / "rows.csv"
    assert read_rows(path) == []
    write_rows(path, [KEPT, TOO_SMALL])
    assert read_rows(path) == [KEPT, TOO_SMALL]


def test_the_table_shows_what_was_not_kept():
    console = Console(width=80, record=True)
    console.print(as_table([KEPT, OVER, TOO_SMALL]))
    kept, over, small = console.export_text().splitlines()[-3:]
    assert "+2.0 %" in kept
    assert "0.75" in kept
    assert "OVER" not in kept
    assert "143 OVER" in over  # 150 MB
    assert "-10.0 %" in over
    assert "too small" in small


def test_the_summary_counts():
    assert peak_error(OVER) == pytest.approx(-0.1)
    assert summary([KEPT, OVER, TOO_SMALL]) == (
        "3 budgets, 1 too small; the measured peak is within 1 of 2, and 0.91 of the budget in the "
        "median. Predicted peaks are off by 6.0 % in the median and 10.0 % at worst. Steps took "
        "8.0 % longer than plain ones in the median, planned were 4.0 %; the two differ by 4.0 "
        "points in the median."
    )
    assert ratios([KEPT, OVER, TOO_SMALL]).endswith("1.058 with oneDNN on, 1.019 with oneDNN off.")
    assert summary([TOO_SMALL]) == "1 budgets, none of which can be kept"


def test_the_picture_shows_predicted_beside_measured_peaks(tmp_path, monkeypatch):
    figures = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, path: figures.append(self))
    draw([KEPT, OVER, TOO_SMALL], tmp_path / "rows.png")
    peaks, times = figures[0].axes
    (predicted, measured), _ = peaks.collections[0].get_offsets()
    assert (predicted, measured) == pytest.approx((153e6 / 2**20, 150e6 / 2**20))
    assert peaks.get_title() == "peak, MiB"
    assert peaks.get_xlim() == peaks.get_ylim()
    assert tuple(times.collections[0].get_offsets()[1]) == pytest.approx((4, 6))
    labels = peaks.get_legend_handles_labels()[1]
    assert labels[:2] == ["U-Net", "VGG16"]
    assert "over its budget" in labels
    save(figures[0], tmp_path / "rows.png")
    assert (tmp_path / "rows.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_of_no_plan(tmp_path):
    draw([TOO_SMALL], tmp_path / "rows.svg")
    assert (tmp_path / "rows.svg").exists()


@pytest.mark.slow
def test_the_quick_form_writes_where_it_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(predictions, "measure_rows", lambda *_, **__: iter([KEPT]))
    path = tmp_path / "told.csv"
    predictions.main(["--quick", "--output", str(path)])
    assert read_rows(path) == [KEPT]
    assert path.with_suffix(".png").exists()
