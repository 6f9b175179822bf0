"""The tables of `experiments.step_benchmark`."""

from __future__ import annotations

from experiments.step_benchmark import print_tables

ROW = {
    "model": "EfficientNetB0", "one_dnn": False, "resident": 1200 * 2**20, "plain_peak": 2**31,
    "budget": 1500 * 2**20, "peak": 1600 * 2**20, "slowdown": 1.234, "allowed_slowdown": 1.25,
    "ready": 1234.5, "bits_equal": None, "float64_distance": 2e-13, "plain_distance": 1.5e-7,
    "distance": 2.5e-7,
}  # fmt: skip


def test_the_tables_fit_and_break_no_word(capsys):
    print_tables([ROW, {**ROW, "one_dnn": True, "bits_equal": True, "peak": 2**30}])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    words = text.split()
    for word in ("resident", "within", "ready", "oneDNN", "equal", "float64", "2048", "2.5e-07"):
        assert word in words
    first, second = (line.split() for line in text.splitlines() if line.endswith("1234 s"))
    assert first[1:] == ["off", "1200", "2048", "1500", "1600", "NO", "1.23", "1.25", "1234", "s"]
    assert second[6] == "yes"
