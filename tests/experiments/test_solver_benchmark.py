from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from rich.console import Console

from experiments.anytime import Point, curve, plot_curves
from experiments.layered_graphs import SIZES, layered_graph
from experiments.published import public_instance, published_overhead
from experiments.solver_benchmark import Row, as_tables, main, paper_questions
from solvers import Progress, solve
from solvers.graph.layer_graphs import unit_chain


@pytest.mark.parametrize(("nodes", "edges"), SIZES.items())
def test_layered_graphs_are_as_large_as_the_public_ones(nodes: int, edges: int) -> None:
    graph = layered_graph(nodes, edges)
    assert (len(graph), len(graph.edges)) == (nodes, edges)
    assert graph == layered_graph(nodes, edges)
    assert graph != layered_graph(nodes, edges, seed=1)
    assert sum(not node.dependencies for node in graph.nodes) < nodes / 5


def test_a_curve_begins_with_the_first_schedule() -> None:
    graph = unit_chain(8)
    told = [Progress(0.5, None, 18.0), Progress(1.0, 34.0, 17.0), Progress(2.0, 25.5, 20.4)]
    points = curve(graph, told, solve(graph, 6, "milp"))
    assert points[:2] == [Point(1.0, 100.0, 0.0), Point(2.0, 50.0, pytest.approx(20.0))]
    assert points[1].gap == pytest.approx(30)
    assert points[-1].gap == 0


def test_published_rows_are_found_by_name() -> None:
    assert published_overhead("layered-1000", "free", 70) == 7.4
    assert published_overhead("ResNet50", "fixed", 80) == 0.3
    assert published_overhead("VGG16", "fixed", 80) is None
    assert public_instance("random_layered_n250_w0.43_nlv0.75_ed0.2_scd0.14") == "layered-250"


@pytest.mark.slow
def test_nothing_published_stands_beside_networks_with_other_costs() -> None:
    pytest.importorskip("keras")
    assert {question.instance for question in paper_questions()} == {""}


def test_the_benchmark_writes_table_csv_and_plot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, rows, plot = tmp_path / "graph.json", tmp_path / "rows.csv", tmp_path / "plot.png"
    unit_chain(8).save(graph)
    arguments = ["--graphs", str(graph), "--budget", "60", "--solver", "cutting_planes", "milp"]
    main([*arguments, "--seeds", "2", "--csv", str(rows), "--plot", str(plot)])
    with rows.open() as file:
        found = list(csv.DictReader(file))
    # The optimum at 6 bytes is 21, one pass costs 17.
    assert [row["solver"] for row in found] == ["cutting_planes", "milp"]
    assert all(float(row["overhead"]) == pytest.approx(100 * 4 / 17) for row in found)
    assert {row["seeds"] for row in found} == {"2"}
    assert plot.stat().st_size > 1000
    assert "23.529" in capsys.readouterr().out


def test_tables_fit_80_columns_however_wide_the_figures() -> None:
    row = Row(
        "random_layered_n1000_w0.43_nlv0.75_ed0.2_scd0.14", 10_000, 40_000, "fixed", 90,
        "milp_unpartitioned", 1234.5678, 123.4567, 123.4567, "fixed", "infeasible", 119.9999,
        120.1234, 5, 103.4,
    )  # fmt: skip
    console = Console(width=80, record=True)
    for table in as_tables([row, replace(row, order="free"), row]):
        console.print(table)
    text = console.export_text()
    assert "…" not in text
    for shown in ("milp_unpartitioned", "1234.568", "123.457", "infeasible", "120.123", "103.4"):
        assert text.count(shown) >= 3
    assert text.count("overhead") == 3  # a table for each graph and order


def test_a_panel_a_group_and_a_style_a_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer has a marker; axes begin and end where the points do."""
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, path: figures.append(self))
    long = [Point(2.0, 9.0, 1.0), Point(60.0, 5.0, 4.5)]
    short = [Point(0.03, 3.0, 3.0)]
    curves = {
        "paper": {"auto": [short, long], "milp": [[]]},
        "none": {"auto": [[]]},
        "steps": {"auto": [short], "milp": [long]},
    }
    plot_curves(curves, "plot.png")
    panels = [axes for axes in figures[0].axes if axes.axison]
    assert [axes.get_title() for axes in panels] == ["paper: 2 problems", "steps: 1 problem"]
    colours = []
    for axes in panels:
        marked = [line for line in axes.lines if line.get_marker() not in ("", "None")]
        colours.append({line.get_label().split(":")[0]: line.get_color() for line in marked})
        low, high = axes.get_xlim()
        assert 0.02 < low < 0.03
        assert 60 < high < 90
        assert axes.get_ylim()[0] == 0
        assert 8 < axes.get_ylim()[1] < 20
    assert colours[1]["auto"] == colours[0]["auto"] != colours[1]["milp"]
    labels = panels[0].get_legend_handles_labels()[1]
    assert labels[0] == "auto: 1 of 2 without a gap"


def test_empty_curves_are_drawn_as_well(tmp_path: Path) -> None:
    plot_curves({"nothing": {"auto": []}}, tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--seeds", "0"], "--seeds: 0 is not a positive number"),
        (["--solver", "atuo"], "no solver 'atuo'"),
        (["--graphs", "none.json"], "none.json: cannot be read"),
        (["--graphs", "FREE"], "one pass costs nothing"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    arguments: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    free, rows = tmp_path / "free.json", tmp_path / "rows.csv"
    nodes = tuple(replace(node, cost=0) for node in unit_chain(2).nodes)
    replace(unit_chain(2), nodes=nodes).save(free)
    named = [str(free) if each == "FREE" else each for each in arguments]
    with pytest.raises(SystemExit):
        main(["--quick", *named, "--csv", str(rows), "--plot", str(tmp_path / "plot.png")])
    assert complaint in capsys.readouterr().err
    assert not rows.exists()


def test_without_an_answer_nothing_is_said_to_be_written(tmp_path: Path) -> None:
    graph, rows = tmp_path / "graph.json", tmp_path / "rows.csv"
    unit_chain(8).save(graph)
    arguments = ["--graphs", str(graph), "--budget", "60", "--time-limit", "0"]
    with pytest.raises(SystemExit, match="nothing is written"):
        main([*arguments, "--csv", str(rows), "--plot", str(tmp_path / "plot.png")])
    assert not rows.exists()


@pytest.mark.slow
def test_a_gradient_goes_through_every_unrolled_step() -> None:
    from experiments.large_steps import gan

    two, three, four = (gan(unrolled) for unrolled in (2, 3, 4))
    assert 0 < len(three) - len(two) == len(four) - len(three)
    assert two.one_pass_cost < three.one_pass_cost < four.one_pass_cost
