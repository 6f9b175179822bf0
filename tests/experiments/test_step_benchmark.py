"""The tables of `experiments.step_benchmark`."""

from __future__ import annotations

from experiments.step_benchmark import print_tables

ROW = {
    "model": "EfficientNetB0", "one_dnn": False, "resident": 1200 * 2**20, "plain_peak": 2**31,
    "budget": 1500 * 2**20, "peak": 1600 * 2**20, "slowdown": 1.32, "told": 0.2,
    "ready": 1234.5, "bits_equal": None, "float64_distance": 2e-13, "plain_distance": 1.5e-7,
    "distance": 2.5e-7,
}  # fmt: skip
TIMES = ["1.200", "1.320", "1.100"]


def test_the_tables_fit_and_break_no_word(capsys):
    print_tables([ROW, {**ROW, "one_dnn": True, "bits_equal": True, "peak": 2**30}])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    words = text.split()
    for word in (*"held told measured ratio within ready oneDNN equal float64".split(), "2.5e-07"):
        assert word in words
    first, second = (line.split() for line in text.splitlines() if line.endswith("1234 s"))
    assert first[1:] == ["off", "1200", "2048", "1500", "1600", "NO", *TIMES, "1234", "s"]
    assert second[6] == "yes"
    medians = [line.split() for line in text.splitlines() if line.startswith("median")]
    assert medians == [["median", "on", *TIMES], ["median", "off", *TIMES]]
