"""What of `experiments.gpu` needs no GPU: its rows, its tables, and what is said without one."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest
import tensorflow as tf
from rich.console import Console

from experiments.gpu import batches
from experiments.gpu.__main__ import main
from experiments.gpu.cases import CASES, MODELS, Case
from experiments.gpu.tables import errors, tables

STEPS = {
    "plain": {"peaks": [8360e6, 5880e6, 5880e6], "seconds": [21.4, 0.1, 0.1]},
    "ours": {"peaks": [4000e6, 2950e6, 2951e6], "seconds": [63.0, 0.1, 0.1]},
    "budget": 3000e6, "overhead": 0.03, "plans": 2, "xla": [True, True],
    "milliseconds": {"plain": 25.6, "ours": 27.5},
}  # fmt: skip
LIMIT = {"limit": 4.4e9, "plain": {"exhausted": True}, "ours": {"exhausted": False, "peak": 3e9}}
BITS = {
    "xla": True,
    "variables": 536,
    "differ": 0,
    "own": 2,
    "distance": 0.0,
    "own distance": 1.3e-7,
}


def test_rows_are_different_and_each_limit_has_its_steps():
    assert len(set(CASES)) == len(CASES)
    assert {case.model for case in CASES} <= set(MODELS)
    for case in CASES:
        assert case.look != "limit" or replace(case, look="steps") in CASES


def test_the_tables_fit_a_terminal_and_tell_what_failed():
    case = Case("ResNet50", 128, 224, xla=True, precision="mixed_bfloat16")
    done = {
        case: STEPS,
        replace(case, batch=2): {**STEPS, "xla": [True, False]},
        replace(case, xla=False): {"error": "exit status 9"},
        replace(case, look="limit"): LIMIT,
        replace(case, look="bits"): BITS,
    }
    console = Console(width=80)
    with console.capture() as captured:
        for table in tables(done):
            console.print(table)
    text = captured.get()
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert {"5.88", "(8.36)", "2.95", "0.984", "7.4", "63", "exhausted", "536"} <= set(text.split())
    [failed] = errors(done)
    assert "exit status 9" in failed


def test_batches_around_those_that_memory_names(monkeypatch):
    """Those that are asked for differ, and what failed is told in its row."""

    def found(look, case, *_):
        if look == "told":
            return {"unchanged": 10, "planned": 20}
        if case.batch > 20:
            return {"error": "batch-too-large"}
        return {"peak": 3 << 30, "overhead": 0.051, "ready": 61.2, "said": ["larger-batch-came"]}

    monkeypatch.setattr(batches, "_in_process", found)
    got = list(batches.rows(batches.CASES[0], 8, 60))
    assert [(int(row[1]), row[2]) for row in got] == [
        *((7, "fits"), (10, "fits"), (15, "by plan"), (20, "by plan"), (40, "too large")),
    ]
    assert got[-1][3] == "batch-too-large"
    assert got[0][3:] == ("trained; larger-batch-came", "3.00", "5.1%", "61")
    assert all(len(row) == len(batches.COLUMNS) for row in got)
    monkeypatch.setattr(batches, "name_of_gpu", str)  # there is none
    assert batches.main(["--gib", "8"]) == 1


@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="there is a GPU")
def test_without_a_gpu_it_says_so_and_shows_what_a_file_has(tmp_path, capsys):
    file = tmp_path / "gpu.json"
    assert main(["--output", str(file)]) == 1
    assert not file.exists()
    rows = [{"case": asdict(Case("GPT", 16, 512)), "found": STEPS}]
    file.write_text(json.dumps({"gpu": "NVIDIA H200", "rows": rows}))
    capsys.readouterr()
    assert main(["--show", "--output", str(file)]) == 0
    said = capsys.readouterr().out
    assert "NVIDIA H200" in said
    assert "GPT 16×512" in said
