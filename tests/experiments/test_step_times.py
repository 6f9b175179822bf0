"""Step times as multiples of the plain step's."""

from __future__ import annotations

import pytest
from rich.console import Console

from experiments.step_times import as_table, measured, times_plain


def test_neighbours_are_compared() -> None:
    """On a machine that becomes four times as slow, the medians themselves say 1."""
    seconds = {"plain": [1.0, 4.0, 4.0], "ours": [1.5, 4.0, 6.0]}
    assert times_plain({"seconds": seconds}, "ours") == 1.5


@pytest.mark.slow
def test_a_row_of_a_small_model() -> None:
    row = measured("U-Net", 1, 2, side=96)
    assert {name: len(each) for name, each in row["seconds"].items()} == {
        "plain": 2,
        "ours": 2,
        "unchanged": 2,
    }
    assert min(min(each) for each in row["seconds"].values()) > 0
    assert row["planned"] >= 0
    console = Console(width=80, record=True)
    console.print(as_table([row]))
    text = console.export_text()
    assert f"{times_plain(row, 'unchanged'):.3f}" in text
    assert f"{1 + row['planned']:.3f}" in text


@pytest.mark.parametrize("on", [0, 1])
def test_medians_are_told_apart_by_one_dnn(on: int) -> None:
    def row(one_dnn: int, ours: float) -> dict[str, object]:
        seconds = {"plain": [1.0], "unchanged": [1.0], "ours": [ours]}
        return {"model": "U-Net", "one_dnn": one_dnn, "seconds": seconds, "planned": 0.25}

    console = Console(width=80, record=True)
    console.print(as_table([row(on, 1.25), row(on, 1.75), row(1 - on, 3.0)]))
    medians = [line for line in console.export_text().splitlines() if "median" in line]
    assert len(medians) == 2
    [of] = [line.split() for line in medians if ("on" if on else "off") in line.split()]
    assert [each for each in of if "." in each][-3:] == ["1.250", "1.500", "1.200"]


def test_a_budget_that_cannot_be_kept_is_told() -> None:
    console = Console(width=80, record=True)
    console.print(as_table([{"model": "U-Net", "one_dnn": 0}]))
    assert "too small" in console.export_text()
