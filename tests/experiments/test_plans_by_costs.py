"""Plans by each cost model, of a small step."""

from __future__ import annotations

import pytest
from rich.console import Console

from experiments.plans_by_costs import COSTS, SHARES, as_table, rows_of


@pytest.mark.slow
def test_rows_of_a_small_model(tmp_path, monkeypatch):
    monkeypatch.setenv("CHECKMATE_TF_CACHE", str(tmp_path))
    rows = rows_of("U-Net", side=16, seconds=2)
    assert [row["share"] for row in rows] == list(SHARES)
    for row in rows:
        assert row["model"] == "U-Net"
        found = [row[each] for each in COSTS]
        # A cost is that of a schedule that computes everything at least once.
        assert all(extra is None or extra >= -1e-9 for extra in found)
    assert all(rows[0][each] is not None for each in COSTS)


def test_the_table_has_medians_of_complete_rows():
    rows = [
        {"model": "A", "share": 0.7, **dict.fromkeys(COSTS, 0.01)},
        {"model": "B", "share": 0.7, **dict.fromkeys(COSTS, 0.03)},
        {"model": "C", "share": 0.5, **dict.fromkeys(COSTS, 0.9), "flops": None},
    ]
    console = Console(width=80, record=True)
    console.print(as_table(rows))
    lines = console.export_text().splitlines()
    assert "none" in next(line for line in lines if line.startswith("C"))
    assert next(line for line in lines if line.startswith("median")).split()[1:] == ["2.00"] * 4
    assert max(map(len, lines)) <= 80
