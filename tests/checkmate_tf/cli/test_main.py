import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from checkmate_tf import __version__
from checkmate_tf.cli.main import main
from solvers import SOLVERS, Progress, Schedule, simulate
from solvers.graph.layer_graphs import unit_chain
from tests.graphs import U_SHAPE


@pytest.fixture
def chain(tmp_path: Path) -> str:
    path = tmp_path / "chain.json"
    unit_chain(8).save(path)
    return str(path)


def test_solve_prints_a_table_and_writes_a_plan(
    chain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "plan.json"
    status = main(["solve", chain, "--budget", "6", "--solver", "milp", "--output", str(output)])
    assert status == 0
    printed = capsys.readouterr()
    assert "optimal" in printed.out
    assert "23.529 %" in printed.out
    assert printed.err == ""
    assert max(map(len, printed.out.splitlines())) <= 80
    plan = json.loads(output.read_text())
    keys = "graph solver status budget peak cost bound bound_order among seconds schedule"
    assert set(plan) == {*keys.split(), "format", "version", "computation_graph"}
    assert plan["among"] == "schedules that compute no node twice in a stage"
    simulation = simulate(unit_chain(8), Schedule(plan["schedule"]))
    assert (simulation.cost, simulation.peak) == (plan["cost"], plan["peak"]) == (21, 6)


def test_a_plan_holds_the_ids_of_the_file(tmp_path: Path) -> None:
    graph = {
        "nodes": [
            {"id": name, "cost_cpu": 1, "cost_ram": 1, "backward": False} for name in ("x", "y")
        ],
        "links": [{"source": "x", "target": "y"}],
    }
    path, output = tmp_path / "graph.json", tmp_path / "plan.json"
    path.write_text(json.dumps(graph))
    arguments = ["solve", str(path), "--budget", "2", "--solver", "checkpoint_all"]
    assert main([*arguments, "--output", str(output)]) == 0
    assert json.loads(output.read_text())["schedule"] == ["x", "y"]


def test_infeasible_is_status_3_and_says_what_would_do(
    chain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "plan.json"
    status = main(["solve", chain, "--budget", "2", "--solver", "milp", "--output", str(output)])
    assert status == 3
    error = capsys.readouterr().err
    assert "no schedule is under this budget" in error
    assert "known to be enough" in error
    assert not output.exists()


def test_no_answer_is_status_4(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", chain, "--budget", "4", "--solver", "checkpoint_all"]) == 4
    assert "10 bytes (10 B) are known to be enough" in capsys.readouterr().err


def test_a_bound_alone_is_an_answer(chain: str) -> None:
    assert main(["solve", chain, "--budget", "4", "--solver", "lp_bound"]) == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "required: COMMAND"),
        (["solve"], "required: GRAPH, --budget"),
        (["solve", "nowhere.json", "--budget", "80%"], "nowhere.json: cannot be read"),
        (["solve", "CHAIN", "--budget", "80x"], "'80x' is not a size"),
        (["solve", "CHAIN", "--budget", "80%", "--solver", "mlip"], "did you mean 'milp'"),
        (["solve", "CHAIN", "--budget", "80%", "--time-limit", "-1"], "not a positive number"),
        (["solve", "CHAIN", "--budget", "80%", "--time-limit", "x"], "invalid number value"),
        (["solve", "CHAIN", "--budget", "80%", "--order", "any"], "invalid choice"),
        (["solve", "CHAIN", "--budget", "80%", "--output", "no/plan.json"], "does not exist"),
        (["solve", "CHAIN", "--budget", "60%", "--solver", "milp", "--backend", "x"], "backend"),
        (["compare", "CHAIN"], "required: --budget"),
        (["compare", "--budget", "80%"], "compare needs a graph"),
        (["extract", "module:function"], "required: --output"),
    ],
)
def test_bad_usage_is_status_2_and_one_line(
    arguments: list[str], complaint: str, chain: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([chain if each == "CHAIN" else each for each in arguments]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert len(error.splitlines()) == 1


def test_a_demo_without_its_data_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)  # as where it is not installed
    assert main(["demo", "--picture", str(tmp_path / "demo.png")]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "pip install scikit-learn" in line


def test_a_broken_graph_is_named_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.json"
    path.write_text('{"nodes": [')
    assert main(["solve", str(path), "--budget", "80%"]) == 2
    error = capsys.readouterr().err
    assert str(path) in error
    assert "line 1" in error


def test_compare_prints_tables_of_80_columns_and_writes_files(
    chain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "u.json"
    U_SHAPE.save(other)
    table, plot = tmp_path / "rows.csv", tmp_path / "plot.png"
    arguments = ["compare", chain, str(other), "--budget", "80%", "60%", "--time-limit", "5"]
    solvers = ["--solver", "milp", "griewank", "linearized_greedy", "lp_bound"]
    assert main([*arguments, *solvers, "--csv", str(table), "--plot", str(plot)]) == 0
    printed = capsys.readouterr().out.replace(str(tmp_path), "")
    assert max(map(len, printed.splitlines())) <= 80
    assert "not valid: griewank" in printed
    assert "the best at each budget" in printed
    assert "plot.png: overhead against budget" in printed
    assert len(table.read_text().splitlines()) == 1 + 2 * 2 * 4
    assert plot.exists()


def test_compare_takes_graphs_after_its_options(
    chain: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["compare", "--solver", "checkpoint_all", "griewank", "--budget", "100%", "1B"]
    assert main([*arguments, chain]) == 0
    printed = capsys.readouterr().out
    assert "checkpoint_all" in printed
    assert "no schedule exists" in printed


def test_compare_prints_no_empty_table(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", chain, "--budget", "1B", "--solver", "griewank"]) != 0
    printed = capsys.readouterr().out
    assert "the best at each budget" in printed
    assert "Every solver that has a result" not in printed


def test_a_share_may_be_meant(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", chain, "--budget", "2", "--solver", "milp"]) == 3
    assert "did you mean '2%'?" in capsys.readouterr().err


def test_solvers_are_listed_within_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solvers"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in SOLVERS)
    assert max(map(len, printed.splitlines())) <= 80


def test_help_is_status_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "Exit status" in capsys.readouterr().out


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"checkmate-tf {__version__}\n"


def test_saved_graphs_need_no_tensorflow(chain: str) -> None:
    program = (
        "import sys; sys.modules['tensorflow'] = sys.modules['keras'] = None\n"
        "from checkmate_tf.cli.main import main\n"
        f"sys.exit(main(['solve', {chain!r}, '--budget', '6', '--solver', 'linearized_greedy']))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_ctrl_c_leaves_the_incumbent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def interrupting_progress(*_: object) -> Iterator[Callable[[Progress], None]]:
        def show(report: Progress) -> None:
            if report.phase == "solving the MILP":
                raise KeyboardInterrupt

        yield show

    monkeypatch.setattr("checkmate_tf.cli.solve.solver_progress", interrupting_progress)
    graph, output = tmp_path / "graph.json", tmp_path / "plan.json"
    unit_chain(40).save(graph)  # takes the MILP far longer than a test may
    arguments = ["solve", str(graph), "--budget", "40%", "--solver", "milp", "--time-limit", "5"]
    assert main([*arguments, "--output", str(output)]) == 0
    assert "feasible" in capsys.readouterr().out
    assert output.exists()


def test_ctrl_c_ends_a_comparison_and_keeps_its_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, table = tmp_path / "graph.json", tmp_path / "rows.csv"
    unit_chain(40).save(graph)
    timer = threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    arguments = ["compare", str(graph), "--budget", "40%", "--time-limit", "5"]
    solvers = ["--solver", "linearized_sqrt", "milp", "lp_rounding", "milp"]
    assert main([*arguments, *solvers, "--csv", str(table)]) == 0
    assert "stopped" in capsys.readouterr().out
    assert 1 <= len(table.read_text().splitlines()) - 1 < 4


@pytest.mark.parametrize("seed", ["-1", "2147483648", "one"])
def test_a_seed_that_there_is_not_is_bad_usage(
    chain: str, seed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", chain, "--budget", "80%", "--seed", seed]) == 2
    assert "argument --seed" in capsys.readouterr().err
