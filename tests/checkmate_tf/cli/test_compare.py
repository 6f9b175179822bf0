"""`checkmate-tf compare`: results are told apart by graph, and none is lost on its way out."""

import csv
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from checkmate_tf.cli.main import main
from solvers.graph.layer_graphs import unit_chain

QUICK = ["--budget", "80%", "--solver", "cutting_planes"]


def saved(path: Path, layers: int = 4, name: str = "net") -> str:
    replace(unit_chain(layers), name=name).save(path)
    return str(path)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_graphs_of_the_same_name_are_told_apart_by_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    graphs = [saved(Path("a.json")), saved(Path("b.json"), 6), saved(Path("c.json"), 8, "other")]
    assert main(["compare", *graphs, "a.json", *QUICK, "--csv", "rows.csv"]) == 0
    names = ["net (a.json)", "net (b.json)", "other"]
    assert [row["graph"] for row in rows_of(Path("rows.csv"))] == names
    printed = capsys.readouterr().out
    assert all(f"{name}: the best at each budget" in printed for name in names)


def test_names_are_printed_and_drawn_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "[bold]net[/none] :smile: $\\none$"
    graph = saved(tmp_path / "a.json", name=name)
    table, plot, plan = (tmp_path / each for each in ("rows.csv", "plot.svg", "plan.json"))
    assert main(["compare", graph, *QUICK, "--csv", str(table), "--plot", str(plot)]) == 0
    assert f"{name}: the best at each budget" in capsys.readouterr().out
    assert [row["graph"] for row in rows_of(table)] == [name]
    assert plot.exists()
    assert main(["solve", graph, *QUICK, "--output", str(plan)]) == 0
    assert f"{name} (9 nodes" in capsys.readouterr().out
    assert main(["profile", graph, "--plot", str(plot)]) == 0
    assert name in capsys.readouterr().out


def test_half_a_surrogate_pair_in_a_name_ends_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, table = saved(tmp_path / "a.json", name="net \ud800"), tmp_path / "rows.csv"
    assert main(["compare", graph, *QUICK, "--csv", str(table)]) == 0
    assert "net ?: the best at each budget" in capsys.readouterr().out
    assert [row["graph"] for row in rows_of(table)] == ["net ?"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--plot", "plot.txt"], "plot.txt: a picture's file ends in .png"),
        (["--plot", "plot"], "plot: a picture's file ends in .png"),
        (["--backend", "hihgs"], "no backend 'hihgs'; there are: highs"),
        (["--backend", "highs:SCIP"], "only cvxpy has solvers to choose among"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_runs(
    arguments: list[str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run_cases(*_: object) -> None:
        pytest.fail("it ran")

    monkeypatch.setattr("checkmate_tf.cli.compare.run_cases", run_cases)
    assert main(["compare", saved(tmp_path / "a.json"), *QUICK, *arguments]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "option", "file"), [("compare", "--csv", "rows.csv"), ("solve", "--output", "p")]
)
def test_results_are_written_though_nobody_reads_the_table(
    tmp_path: Path, command: str, option: str, file: str
) -> None:
    """As in `checkmate-tf compare … | head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    graph, output = saved(tmp_path / "a.json"), tmp_path / file
    arguments = [command, graph, *QUICK, option, str(output)]
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "checkmate_tf", *arguments],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writer)
    assert "Traceback" not in ended.stderr
    assert output.exists()


def test_the_table_is_printed_though_the_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, output = saved(tmp_path / "a.json"), str(tmp_path / "output")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    for command, option in (("compare", "--csv"), ("solve", "--output")):
        assert main([command, graph, *QUICK, option, output]) == 2
        printed = capsys.readouterr()
        assert "cutting_planes" in printed.out
        assert "cannot be written: disk full" in printed.err


def test_a_terminal_without_the_signs_gets_others() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run(
        [sys.executable, "-m", "checkmate_tf", "solvers"],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert b"?L-th layer" in ended.stdout
