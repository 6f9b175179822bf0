"""What of `experiments.xla` needs no plan: its rows, and its tables."""

from __future__ import annotations

from experiments.xla.steps import ROWS
from experiments.xla.tables import print_float64


def test_eight_models_at_three_budgets():
    plain = [row for row in ROWS if not row.depth_first and row.precision == "float32"]
    budgets = {}
    for row in plain:
        budgets.setdefault((row.model, row.batch, row.side), set()).add(row.share)
    assert sum(len(shares) >= 3 for shares in budgets.values()) >= 8


def test_the_table_of_distances_from_float64(capsys):
    row = {
        "model": "DenseNet121", "batch": 4, "side": 64, "optimizer": "sgd", "share": 0.5,
        "precision": "float32", "depth_first": False, "distance": 1e-6,
        "from_float64": [2.1e-6, 2.3e-6],
    }  # fmt: skip
    print_float64([{**row, "from_float64": None}])
    assert not capsys.readouterr().out
    print_float64([row])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert {"50", "2.1e-06", "2.3e-06", "1.0e-06"} <= set(text.split())
