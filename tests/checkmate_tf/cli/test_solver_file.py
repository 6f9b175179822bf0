"""`--solver-file`: a solver of one's own, from the command line's point of view."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkmate_tf.cli.main import main
from solvers import SOLVERS
from solvers.graph.layer_graphs import unit_chain

MINE = """
import solvers

@solvers.register("mine", summary="keeps every value")
def mine(problem):
    schedule = solvers.Schedule(order(problem.graph))
    return solvers.answer(problem, "mine", schedule)

def order(graph):
    return range(len(graph))
"""


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    SOLVERS.pop("mine", None)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, Path]:
    unit_chain(8).save(tmp_path / "chain.json")
    return str(tmp_path / "chain.json"), tmp_path / "mine.py"


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_compare_runs_it_beside_others(
    files: tuple[str, Path], capsys: pytest.CaptureFixture[str], jobs: str
) -> None:
    graph, mine = files
    mine.write_text(MINE)
    arguments = ["compare", graph, "--budget", "100%", "--solver", "checkpoint_all", "mine"]
    assert main([*arguments, "--solver-file", str(mine), "--jobs", jobs]) == 0
    (row,) = (line for line in capsys.readouterr().out.splitlines() if " mine " in line)
    assert "0.00" in row
    assert "feasible" in row


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_where_it_fails_the_others_keep_their_rows(
    files: tuple[str, Path], capsys: pytest.CaptureFixture[str], jobs: str
) -> None:
    graph, mine = files
    mine.write_text(MINE.replace("range(len(graph))", "graph.knots"))
    table = mine.with_name("rows.csv")
    arguments = ["compare", graph, "--budget", "100%", "--solver", "checkpoint_all", "mine"]
    arguments += ["--solver-file", str(mine), "--jobs", jobs, "--csv", str(table)]
    assert main(arguments) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "failed with AttributeError: 'ComputationGraph' object has no attribute" in printed
    assert "'knots': mine" in printed
    with table.open() as file:
        assert [row["status"] for row in csv.DictReader(file)] == ["feasible", "failed"]


def test_its_answer_passes_the_simulator(
    files: tuple[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    graph, mine = files
    mine.write_text(MINE.replace("range(len(graph))", "reversed(range(len(graph)))"))
    arguments = ["solve", graph, "--budget", "100%", "--solver", "mine"]
    assert main([*arguments, "--solver-file", str(mine)]) == 2
    assert "mine" in capsys.readouterr().err


def test_it_is_listed(files: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    _, mine = files
    mine.write_text(MINE)
    assert main(["solvers", "--solver-file", str(mine)]) == 0
    assert "keeps every value" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("import solvers", "registers no solver; decorate one with @solvers.register"),
        ("nonsense(", "SyntaxError"),
        (MINE.replace('"mine"', '"auto"'), "auto"),
    ],
)
def test_a_file_that_registers_nothing_is_named(
    files: tuple[str, Path], capsys: pytest.CaptureFixture[str], text: str | None, message: str
) -> None:
    _, mine = files
    if text is not None:
        mine.write_text(text)
    assert main(["solvers", "--solver-file", str(mine)]) == 2
    error = capsys.readouterr().err
    assert "mine.py: " in error
    assert message in error
