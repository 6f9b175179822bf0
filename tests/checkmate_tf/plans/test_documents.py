"""plan.json: what is written is read again, and what does not belong together is found out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import checkmate_tf
from checkmate_tf.cli.main import main
from checkmate_tf.plans.documents import document_of, read_document
from checkmate_tf.plans.plan import Origin, Plan
from solvers import CheckmateError, ComputationGraph, Node, Schedule, simulate, solve
from tests.graphs import SKIP
from tests.messages import raises

ORIGIN = Origin("0123abcd", (0, 5, 0), 4000, "a CPU, 2 cores", "2.21.0", 16, "adam")


def plan_of_a_step() -> Plan:
    solution = solve(SKIP, 7, "cutting_planes")
    assert solution.schedule is not None
    return Plan(
        graph=SKIP,
        schedule=solution.schedule,
        budget=4096,
        predicted_peak=3000,
        baseline_peak=9000,
        overhead=0.2,
        solution=solution,
        measured_peak=3100,
        notes=("a note", "another"),
        measured_baseline_peak=None,
        origin=ORIGIN,
        seconds={"trace": 0.5, "solve": 1.25},
        why_forecast="trial_run=False",
    )


def test_every_figure_of_a_step_survives(tmp_path: Path) -> None:
    plan = plan_of_a_step()
    plan.save(tmp_path / "plan.json")
    again = Plan.load(tmp_path / "plan.json")
    assert again.overhead == pytest.approx(plan.overhead)
    solution = replace(plan.solution, statistics={})
    assert replace(again, overhead=plan.overhead) == replace(plan, solution=solution)
    assert str(again) == str(plan)


def test_it_is_data_with_the_keys_that_solve_writes() -> None:
    document = json.loads(json.dumps(plan_of_a_step().to_json()))
    for key in "graph solver status budget peak cost bound seconds schedule".split():
        assert key in document
    simulation = simulate(SKIP, Schedule(document["schedule"]))
    assert (document["peak"], document["cost"]) == (simulation.peak, simulation.cost)


def test_what_solve_writes_is_a_plan_too(tmp_path: Path) -> None:
    """With the file's own ids, which need not be numbers."""
    named = ComputationGraph(tuple(replace(each, id=f"node {each.name}") for each in SKIP.nodes))
    named.save(tmp_path / "graph.json")
    output = tmp_path / "plan.json"
    arguments = ["solve", str(tmp_path / "graph.json"), "--budget", "7", "--order", "fixed"]
    assert main([*arguments, "--output", str(output)]) == 0
    assert json.loads(output.read_text())["schedule"][0] == "node skip0"
    plan = checkmate_tf.Plan.load(output)
    simulation = simulate(SKIP, plan.schedule)
    assert plan.predicted_peak == simulation.peak <= 7
    assert plan.overhead == pytest.approx(simulation.cost / SKIP.one_pass_cost - 1)
    assert plan.baseline_peak == simulate(SKIP, Schedule(range(5))).peak
    assert plan.origin is None


def test_without_its_graph_it_needs_one() -> None:
    """As workers tell each other; their costs may differ."""
    plan = plan_of_a_step()
    document = json.loads(json.dumps(plan.to_json(with_graph=False)))
    with raises(CheckmateError, "plan-without-graph"):
        Plan.from_json(document)
    nodes = tuple(replace(each, cost=2 * each.cost) for each in SKIP.nodes)
    other = replace(SKIP, nodes=nodes)
    again = Plan.from_json(document, other)
    assert (again.schedule, again.graph) == (plan.schedule, other)
    # The worker that made it reads it as it is.
    assert Plan.from_json(plan.to_json(with_graph=False), SKIP).origin == ORIGIN


def changed(**changes: Any) -> str:
    return json.dumps({**plan_of_a_step().to_json(), **changes})


def in_step(**changes: Any) -> str:
    document = plan_of_a_step().to_json()
    return json.dumps({**document, "step": {**document["step"], **changes}})


ALONE = ComputationGraph((Node("alone", 1, 1),)).to_json()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (changed()[:200], ("file-not-json",)),
        ("[1, 2]", ("not-a-plan",)),
        ("{}", ("not-a-plan",)),
        (changed(version=2), ("format-version-unknown", 2)),
        (changed(peak=8), ("plan-contradicts-graph", "peak is 8", 6)),
        (changed(cost=99.5), ("plan-contradicts-graph", "cost is 99.5")),
        (changed(peak=None), ("field-invalid", "peak is None", "int or float")),
        (changed(schedule=[0, 1, 2, 3, 4]), ("plan-contradicts-graph",)),
        (changed(schedule=[0, 1, 2, 3, 9]), ("node-unknown", 9)),
        (changed(schedule=[0, [1], 2]), ("node-unknown", [1])),
        (changed(schedule=[0, 2]), ("computed-too-early", "'skip2' before 'skip1'")),
        (changed(computation_graph=ALONE), ("node-unknown",)),
        (changed(computation_graph={"nodes": 3}), ("not-a-graph",)),
        (changed(status="splendid"), ("field-invalid", "status is 'splendid'")),
        (changed(bound_order="any"), ("field-invalid", "bound_order is 'any'")),
        (changed(budget="7 MiB"), ("field-invalid", "budget is '7 MiB'")),
        (changed(budget=True), ("field-invalid", "budget is True")),
        (in_step(predicted_peak=None), ("field-invalid", "predicted_peak is None")),
        (in_step(notes="none"), ("field-invalid", "notes is 'none'")),
        (in_step(origin=[]), ("field-invalid", "origin is []")),
        (in_step(origin={"workspaces": [-1]}), ("field-invalid", "origin", "workspaces")),
        (in_step(seconds={"solve": "long"}), ("field-invalid", "solve is 'long'")),
    ],
)
def test_a_broken_file_is_one_clear_error(text: str, told: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with raises(CheckmateError, *told, path):
        Plan.load(path)
    with raises(CheckmateError, *told):  # when it is named, at once
        checkmate_tf.rematerialize(lambda x: x, plan=str(path))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with raises(CheckmateError, "file-unreadable", "plan.json"):
        Plan.load(tmp_path / "plan.json")


def test_nodes_whose_ids_are_not_distinct_go_by_their_numbers() -> None:
    """As in `to_networkx`; by an id that two nodes have, the schedule would be another one."""
    for first, second in (("x", "x"), (1, None)):  # without an id, a node goes by its number
        a, b = Node("a", 1, 4, id=first), Node("b", 1, 4, dependencies=(0,), id=second)
        graph = ComputationGraph((a, b))
        document = document_of(graph, solve(graph, 8, "checkpoint_all"), 8)
        assert document["schedule"] == [0, 1]
        assert read_document(json.loads(json.dumps(document)))[1].schedule == Schedule([0, 1])


@pytest.mark.parametrize("key", ["budget", "peak", "cost", "bound", "seconds"])
def test_a_number_too_large_to_reckon_with_is_refused(key: str) -> None:
    document = document_of(SKIP, solve(SKIP, 100, "checkpoint_all"), 100)
    with raises(CheckmateError, "field-invalid", f"{key} is 1000"):
        read_document(document | {key: 10**400})
