"""The figures of `experiments.memory`, of a small U-Net."""

from __future__ import annotations

import io

from rich.console import Console

from experiments.memory import as_table, main

ROW = {"model": "U-Net, 2×64", "xla": "off", "one_dnn": "on"}


def test_a_row_is_measured(capsys):
    main(["--quick"])
    printed = capsys.readouterr().out
    assert "U-Net" in printed
    ratio = float(printed.split("│")[-3].strip())
    assert 0.5 < ratio < 2


def test_what_failed_is_in_the_table():
    rows = [{**ROW, "told": 90, "held": 100, "seconds": 1.0}, {**ROW, "failed": "no memory"}]
    shown = Console(file=io.StringIO(), width=80)
    shown.print(as_table(rows))
    assert "no memory" in shown.file.getvalue()
    assert "0.900" in shown.file.getvalue()
