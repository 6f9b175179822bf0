from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from checkmate_tf.cli.plots import plot_operations
from checkmate_tf.graph.operation_costs import costs_of_nodes, costs_of_operations
from profiles.operation import Operation, TensorSize
from profiles.profile import Measurement, Profile
from profiles.profiled import ProfiledCosts
from profiles.roofline import device_ceilings
from solvers import ComputationGraph, Node

SIZE = TensorSize("float32", (8, 32))
RELU, SELU, TANH = (Operation(kind, (SIZE,), (SIZE,)) for kind in ("Relu", "Selu", "Tanh"))
MODEL = ProfiledCosts(
    Profile("a", "1", {RELU: Measurement(0.2, 7), SELU: Measurement(0.5, None)}), device_ceilings()
)


def test_the_costliest_in_all_comes_first() -> None:
    rows = costs_of_operations([SELU, RELU, RELU, RELU, TANH], MODEL)
    assert [(row.name, row.runs) for row in rows[:2]] == [("Relu", 3), ("Selu", 1)]
    assert rows[0].total == pytest.approx(0.6)
    assert (rows[0].output, rows[0].memory, rows[0].workspace) == ("8×32", 8 * 32 * 4, 7)


def test_nothing_is_lost_and_estimates_are_marked() -> None:
    operations = [SELU, RELU, RELU, TANH, TANH]
    rows = costs_of_operations(operations, MODEL)
    assert sum(row.total for row in rows) == pytest.approx(sum(map(MODEL.cost, operations)))
    assert {row.name for row in rows if not row.measured} == {"Tanh"}


def test_nodes_of_a_saved_graph() -> None:
    graph = ComputationGraph((Node("a", 1.0, 4, workspace=3), Node("b", 2.0, 5)))
    rows = costs_of_nodes(graph)
    assert [(row.name, row.total, row.memory, row.workspace) for row in rows] == [
        ("b", 2.0, 5, 0),
        ("a", 1.0, 4, 3),
    ]


def test_a_plot_has_a_bar_for_each_of_the_costliest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Figure] = []
    save = Figure.savefig

    def keep(figure: Figure, *args: Any, **kwargs: Any) -> None:
        drawn.append(figure)
        save(figure, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", keep)
    rows = costs_of_operations([SELU, RELU, RELU, RELU, TANH], MODEL)
    plot_operations(rows, tmp_path / "plot.svg", "a step", shown=2)
    costs, memories = drawn[0].axes
    widths = [bar.get_width() for bar in costs.patches]
    assert widths == pytest.approx([0.6, 0.5])
    assert [bar.get_width() for bar in memories.patches] == [1024, 1024, 7, 0]
    assert (tmp_path / "plot.svg").stat().st_size > 1000
