from __future__ import annotations

import csv
from pathlib import Path

import pytest

from experiments.anytime import Point, curve, plot_curves
from experiments.layered_graphs import SIZES, layered_graph
from experiments.published import public_instance, published_overhead
from experiments.solver_benchmark import main, paper_questions
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


def test_empty_curves_are_drawn_as_well(tmp_path: Path) -> None:
    plot_curves({"nothing": {"auto": []}}, tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").exists()
