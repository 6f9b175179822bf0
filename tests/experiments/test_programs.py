"""`experiments.programs`: its rows and tables, and one small program through all of it."""

from __future__ import annotations

import pytest
from rich.console import Console

from experiments.programs.__main__ import bits, main, memory
from experiments.programs.rows import (
    as_table,
    kept,
    messages,
    outcome,
    read_rows,
    row_of_ours,
    row_of_plain,
    summary,
    write_rows,
)

MEBIBYTE = 2**20


def figures(peaks=(500, 90, 100, 80), **more):
    """What a trial returns; sizes in MiB."""
    return {
        "held": [0] + [10 * MEBIBYTE for _ in peaks[1:]],
        "peaks": [each * MEBIBYTE for each in peaks],
        "seconds": [9.0] + [0.5 for _ in peaks[1:]],
        "logs": [{"loss": float(each).hex()} for each in peaks],
        "digest": "a",
        "warnings": [],
        "plan": None,
        "error": None,
        "refused": False,
        "said": "",
        "least": None,
        **more,
    }


def planned(budget, peaks=(500, 60, 70, 50), **more):
    plan = {
        "budget": budget * MEBIBYTE,
        "predicted_peak": 65 * MEBIBYTE,
        "measured_peak": None,
        "baseline_peak": 95 * MEBIBYTE,
        "measured_baseline_peak": 99 * MEBIBYTE,
        "overhead": 0.02,
        "notes": [],
    }
    return figures(peaks, plan=plan, **more)


def refused(least=None, said="budget 40 MiB is too small: no schedule. None below 45 MiB"):
    error = "BudgetError"
    return figures((), error=error, refused=True, said=said, least=least, seconds=[], logs=[])


REFUSED = refused(80 * MEBIBYTE)


def test_an_outcome_is_one_word():
    assert outcome(planned(70)) == "trained"
    assert outcome(planned(70, warnings=["checkmate_tf: over"])) == "warned"
    assert outcome(figures()) == "unchanged"
    assert outcome(REFUSED) == "refused"
    assert outcome(figures((), error="ValueError", said="shapes")) == "failed"


def test_the_first_batch_plans_and_does_not_count():
    plain = row_of_plain(figures(), 0.6)
    assert plain["plain"] == 100 * MEBIBYTE
    assert plain["asked"] == 64 * MEBIBYTE  # 10 + 0.6 × 90
    ours = row_of_ours(planned(60))
    assert (ours["worst"], ours["next"]) == (70 * MEBIBYTE, 60 * MEBIBYTE)
    assert (ours["over"], ours["batches"]) == (1, 3)
    assert ours["ready"] == 9


def test_a_forecast_is_told_from_a_measurement():
    ours = row_of_ours(planned(70))
    assert (ours["told"], ours["how"]) == (65 * MEBIBYTE, "forecast")
    assert (ours["plain_told"], ours["plain_how"]) == (99 * MEBIBYTE, "measured")


def test_what_came_of_a_named_budget():
    assert kept(planned(70), 70 * MEBIBYTE) == "kept"
    assert kept(planned(70), 70 * MEBIBYTE - 1) == "over"
    assert kept(REFUSED, 70 * MEBIBYTE) == "refused"


def runs(answers):
    """Runs no process: answers by budget, in turn where it has several; and what was asked."""
    asked = []

    def run(program, one_dnn=False, budget=None, exact=False, say_batch=False):
        asked.append((budget, exact))
        answer = answers[budget]
        return answer.pop(0) if isinstance(answer, list) else answer

    return run, asked


def test_a_named_budget_is_tried_to_the_byte():
    run, asked = runs({None: figures(), 0.6: REFUSED, 80 * MEBIBYTE: planned(80)})
    row = memory(run, run, "distillation", 0, 0.6, 0)
    assert asked == [(None, False), (0.6, False), (80 * MEBIBYTE, False)]
    assert (row["outcome"], row["named"], row["then"]) == ("refused", 80 * MEBIBYTE, "kept")
    assert row["then_worst"] == 70 * MEBIBYTE


SAME = {"digest": "a", "logs": figures()["logs"]}


@pytest.mark.parametrize(
    ("second_plain", "expected"), [(figures(), "unequal"), (figures(digest="b"), "own")]
)
def test_bits_that_differ_may_be_those_of_the_plain_step(second_plain, expected):
    run_plain, _ = runs({None: figures()})
    run, asked = runs({None: second_plain, 0.6: planned(70)})
    assert bits(run, run_plain, "distillation", 0.6, 0) == expected
    assert all(exact for _, exact in asked)


def test_bits_are_compared_at_the_budget_that_was_named():
    run, _ = runs({None: figures(), 0.6: REFUSED, 80 * MEBIBYTE: planned(80, **SAME)})
    assert bits(run, run, "distillation", 0.6, 0) == "equal"
    run, _ = runs({0.6: refused()})
    assert bits(run, run, "distillation", 0.6, 0) == "refused"


def example_rows():
    at = {"one_dnn": 0, "share": 0.6, "said": 0}
    plain = row_of_plain(figures((500, 1000, 1234)), 0.6)
    name = "MobileNetV2 on a data set"  # the longest
    return [
        {"program": name, **at, **plain, **row_of_ours(planned(1069, (500, 1099, 1098)))}
        | {"bits": "unequal"},
        {"program": "distillation", **at, **plain, **row_of_ours(REFUSED)}
        | {"named": 1100 * MEBIBYTE, "then": "refused"},
    ]


def test_rows_survive_the_file(tmp_path):
    path = tmp_path / "new" / "rows.csv"
    assert read_rows(path) == []
    rows = example_rows()
    write_rows(path, rows)
    assert read_rows(path) == [{k: v for k, v in row.items() if v != ""} for row in rows]


def test_the_table_fits_and_says_what_was_not_kept():
    console = Console(width=100, record=True)
    console.print(as_table(example_rows(), "60 %"))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 100
    assert "…" not in text
    first, second = text.splitlines()[-2:]
    assert "2/2" in first
    assert "~65" in first
    assert "1100 refused" in second
    assert messages(example_rows()) == [
        "distillation: BudgetError: budget 40 MiB is too small: no schedule"
    ]
    assert summary(example_rows()) == (
        "2 programs: 1 trained, 1 refused; 1 of 1 that were planned over their budget; 0 of 1 "
        "named budgets kept; 0 of 1 equal to the last bit."
    )


@pytest.mark.slow
def test_a_small_program_from_end_to_end(tmp_path, capsys):
    path = tmp_path / "programs.csv"
    options = ["--batch", "2", "--say-batch", "--no-bits", "--output", str(path)]
    main(["--only", "distillation", "--shares", "0.9", *options])
    (row,) = read_rows(path)
    assert row["batches"] == 11
    assert 0 < row["asked"] < row["plain"]
    assert row["outcome"] in ("trained", "warned", "refused")
    assert "distillation" in capsys.readouterr().out
