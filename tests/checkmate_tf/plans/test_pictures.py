"""A plan as a picture and in a notebook."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import image

from checkmate_tf.plans.pictures import draw_plan
from checkmate_tf.plans.plan import Plan
from solvers import CheckmateError, ComputationGraph, simulate, solve
from tests.graphs import SKIP, random_graphs
from tests.messages import raises
from tests.solvers.graph.test_lifetimes import random_schedule

MEBIBYTE = 2**20


def plan_of(graph: ComputationGraph = SKIP, **changes: object) -> Plan:
    """A plan of a graph that computes its first node twice."""
    solution = solve(graph, 7, "cutting_planes")
    assert solution.schedule is not None
    plan = Plan(graph, solution.schedule, 7 * MEBIBYTE, 3000, 9000, 0.2, solution)
    return replace(plan, **changes)


@settings(max_examples=15)  # a picture takes its time
@given(random_graphs(), st.data())
def test_the_matrix_is_the_papers(graph: ComputationGraph, data: st.DataObject) -> None:
    schedule = random_schedule(graph, data).without_useless(graph)
    figure = draw_plan(graph, schedule, 1, {})
    drawn = [line.get_xydata() for line in figure.axes[1].get_lines()]
    cells = sorted((int(stage), int(node)) for line in drawn for node, stage in line)
    R, _ = schedule.to_matrices(graph)
    assert cells == [tuple(cell) for cell in np.argwhere(R).tolist()]


def test_the_matrix_is_read_without_colours() -> None:
    axes = draw_plan(SKIP, plan_of().schedule, 1, {}).axes[1]
    figure = axes.get_figure()
    assert figure is not None
    file = BytesIO()
    figure.savefig(file, format="png", dpi=100)
    file.seek(0)
    grey = image.imread(file)[..., :3].mean(axis=2)

    def shade(node: int, stage: int) -> float:
        x, y = axes.transData.transform((node, stage))
        return float(grey[grey.shape[0] - 1 - round(y), round(x)])

    R, _ = plan_of().schedule.to_matrices(SKIP)
    shades = {
        kind: {round(shade(node, stage), 1) for stage, node in np.argwhere(cells).tolist()}
        for kind, cells in {
            "first": np.eye(5, dtype=bool),
            "again": R & ~np.eye(5, dtype=bool),
            "neither": ~R,
        }.items()
    }
    assert shades == {"first": {0.7}, "again": {0.0}, "neither": {1.0}}


def test_memory_has_the_budget_and_the_peaks() -> None:
    plan = plan_of(measured_peak=6 * MEBIBYTE)
    axes = plan.plot().axes[0]
    lines = {line.get_label(): line for line in axes.get_lines()}
    peak = simulate(SKIP, plan.schedule).peak / MEBIBYTE
    budget, measured, live = lines.values()
    assert list(lines) == ["budget 7.0", "peak, measured 6.0", "peak of live values 0.0"]
    assert set(budget.get_ydata()) == {7.0}
    assert set(measured.get_ydata()) == {6.0}
    assert live.get_ydata() == [peak]
    assert "MiB" in axes.get_ylabel()


def test_a_picture_is_written_whole_or_not_at_all(tmp_path) -> None:
    path = tmp_path / "plan.png"
    figure = plan_of().plot(path)
    assert image.imread(path).shape[:2] == tuple(figure.get_size_inches()[::-1] * 120)
    plan_of().plot(str(tmp_path / "plan.svg"))
    assert "</svg>" in (tmp_path / "plan.svg").read_text()
    for name, code in (
        ("plan", "picture-format-unknown"),
        ("plan.txt", "picture-format-unknown"),
        ("none/plan.png", "file-unwritable"),
    ):
        with raises(CheckmateError, code, name):
            plan_of().plot(tmp_path / name)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["plan.png", "plan.svg"]


def test_json_is_what_is_saved(tmp_path) -> None:
    plan = plan_of()
    plan.save(tmp_path / "plan.json")
    text = (tmp_path / "plan.json").read_text()
    assert json.loads(text) == json.loads(json.dumps(plan.to_json()))
    assert Plan.from_json(plan.to_json()).schedule == plan.schedule


def test_without_matplotlib_it_is_said_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "checkmate_tf.plans.pictures")
    with raises(CheckmateError, "package-missing", "pip install matplotlib"):
        plan_of().plot()
    shown = plan_of()._repr_html_()
    assert "peak, this plan" in shown
    assert "<img" not in shown


def test_matplotlib_is_loaded_when_something_is_drawn() -> None:
    program = (
        "import sys, checkmate_tf.plans.plan, checkmate_tf.cli.show; "
        "print('matplotlib' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "False\n", run.stderr


class _Reader(HTMLParser):
    """The texts of a page, and the tags that are open."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_notebook_shows_what_print_says_and_the_picture() -> None:
    evil = "<script>alert(1)&amp;<b>"  # no scopes, which are no part of a layer's name
    first, *others = SKIP.nodes
    graph = replace(SKIP, nodes=(replace(first, name=evil), *others))
    plan = plan_of(graph, notes=(evil,))
    reader = _Reader()
    reader.feed(plan._repr_html_())
    reader.close()
    assert reader.open == []
    assert reader.tags == {"table", "tr", "th", "td", "p", "pre", "img"}
    shown = " ".join(" ".join(reader.texts).split())
    assert evil in reader.texts
    assert f"note: {evil}" in reader.texts
    for line in str(plan).splitlines():
        assert " ".join(line.split()) in shown
