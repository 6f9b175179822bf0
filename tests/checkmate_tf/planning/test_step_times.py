"""The extra time is told as a share of a plain step, and measured beside plain steps."""

from __future__ import annotations

import gc
import json
from dataclasses import replace

import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf import progress
from checkmate_tf.cli.main import main
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.planning import baseline, step_times
from checkmate_tf.planning.kept.plan_store import plan_files
from checkmate_tf.planning.trial import in_turn
from checkmate_tf.plans.line import extra_in_words
from tests.dense_steps import SIZE, loss_and_gradient, some_weights

if held_bytes() is None:
    pytest.skip("the allocator keeps no count", allow_module_level=True)

RULE = {"budget": 0.8, "solver": "linearized_greedy", "time_limit": 5}


@pytest.fixture(scope="module", autouse=True)
def _as_long_as_it_takes():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_times, "COMPARED_LEAST", 1e9)
        yield


@pytest.fixture(scope="module")
def x():
    return tf.ones((2048, SIZE))


@pytest.fixture(scope="module")
def step():
    return loss_and_gradient(some_weights(), depth=16)


def planned(step, x, **options):
    kept = checkmate_tf.rematerialize(step, **{**RULE, **options})
    kept(x)
    return kept.plan


@pytest.fixture(scope="module")
def plan(step, x):
    return planned(step, x)


def test_a_plan_says_what_its_steps_and_plain_ones_took(plan):
    assert plan.overhead > 0
    assert plan.plain_seconds > 0
    assert plan.measured_overhead == plan.step_seconds / plan.plain_seconds - 1
    extra = sum(plan.graph.nodes[each].cost for each in plan.schedule.steps)
    extra -= sum(node.cost for node in plan.graph.nodes)
    assert plan.extra_seconds == pytest.approx(extra)
    one_at_a_time = replace(plan, at_once=1)
    assert one_at_a_time.planned_overhead == pytest.approx(extra / plan.plain_seconds)
    assert replace(plan, at_once=2).planned_overhead == plan.overhead
    assert f"{1000 * plan.plain_seconds:.1f} ms plain" in str(plan)
    assert "(measured in turn)" in str(plan)


def test_it_survives_the_file_and_older_ones_say_nothing_of_it(plan, tmp_path):
    plan.save(tmp_path / "plan.json")
    loaded = checkmate_tf.Plan.load(tmp_path / "plan.json")
    assert loaded.measured_overhead == plan.measured_overhead
    assert loaded.planned_overhead == plan.planned_overhead
    document = json.loads((tmp_path / "plan.json").read_text())
    for name in ("plain_seconds", "step_seconds", "timed"):
        del document["step"][name]
    older = checkmate_tf.Plan.from_json(document)
    assert older.measured_overhead is None
    assert older.planned_overhead == older.overhead


def test_the_second_start_says_the_same(step, x, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CHECKMATE_TF_PLANS", str(tmp_path))
    said = []
    monkeypatch.setattr(progress, "announce", lambda code, line, show=None: said.append(line))
    first = planned(step, x)
    gc.collect()
    second = planned(step, x)
    assert first.measured_overhead is not None
    assert second.measured_overhead == first.measured_overhead
    extra = [line.partition("), ")[2].split(", ")[:2] for line in said]
    assert extra[0] == extra[1]
    assert [each.split()[-1] for each in extra[0]] == ["planned", "measured"]
    main(["plans"])
    assert "% measured" in capsys.readouterr().out
    [path] = plan_files()
    document = json.loads(path.read_text())
    del document["kept"]["measured_overhead"], document["kept"]["baseline"]["seconds"]
    path.write_text(json.dumps(document))
    gc.collect()
    assert planned(step, x).step_seconds == first.step_seconds  # as an older release kept it


def test_nothing_is_timed_without_a_trial_run_or_where_no_plain_step_ran(step, x):
    forecast = planned(step, x, trial_run=False)
    assert forecast.measured_overhead is None
    assert forecast.plain_seconds is None
    in_bytes = planned(step, x, budget=held_bytes() + (1 << 30))
    assert in_bytes.measured_peak is not None
    assert in_bytes.measured_overhead is None


def test_a_plain_step_that_has_no_room_by_then_is_not_run_again(step, x, monkeypatch):
    monkeypatch.setattr(step_times, "has_room", lambda known: False)
    plan = planned(step, x)
    assert plan.timed == "one after the other"
    assert plan.measured_overhead == plan.step_seconds / plan.plain_seconds - 1
    assert "measured" not in extra_in_words(plan)
    assert "(measured one after the other)" in str(plan)


def test_nor_one_whose_preparation_would_take_long(step, x, monkeypatch):
    monkeypatch.setattr(step_times, "COMPARED_LEAST", 0.0)
    monkeypatch.setattr(step_times, "COMPARED_SHARE", 0.0)
    assert planned(step, x).timed == "one after the other"


def test_nor_is_a_plan_compared_with_a_plain_step_of_another_process(
    step, x, tmp_path, monkeypatch
):
    monkeypatch.setenv("CHECKMATE_TF_PLANS", str(tmp_path))
    monkeypatch.setattr(step_times, "has_room", lambda known: False)
    first = planned(step, x)
    gc.collect()
    other = planned(step, x, budget=0.9)
    assert other.measured_baseline_peak is not None
    assert other.plain_seconds == first.plain_seconds
    assert other.measured_overhead is None


def test_memory_that_runs_out_meanwhile_ends_the_comparison_alone(step, x, monkeypatch):
    def exhausted(*args):
        raise tf.errors.ResourceExhaustedError(None, None, "no room")

    monkeypatch.setattr(in_turn, "run_on_copies", exhausted)
    plan = planned(step, x)
    assert plan.measured_peak is not None
    assert plan.timed == "one after the other"


def test_the_comparison_changes_no_variable_and_leaves_no_memory(x):
    weights = some_weights()
    before = weights.numpy()

    def step(x):
        loss, gradient = loss_and_gradient(weights, depth=16)(x)
        weights.assign_sub(0.01 * gradient)
        return loss

    held = []

    def noted(*args):
        gc.collect()
        held.append(held_bytes())
        found = in_turn.in_turn(*args)
        held.append(held_bytes())
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_times, "in_turn", noted)
        kept = checkmate_tf.rematerialize(step, **RULE)
        loss = kept(x)
    assert kept.plan.measured_overhead is not None
    assert kept.plan.timed == "in turn"
    assert held[1] == held[0]
    expected, gradient = loss_and_gradient(tf.Variable(before), depth=16)(x)
    assert float(loss) == pytest.approx(float(expected), rel=1e-5)
    assert weights.numpy() == pytest.approx(before - 0.01 * gradient.numpy(), rel=1e-4, abs=1e-5)


def test_costs_that_are_no_seconds_are_told_as_they_are(step, x):
    plan = planned(step, x, costs="flops")
    assert plan.planned_overhead == plan.overhead
    assert plan.extra_seconds is None
    assert plan.measured_overhead is not None
    assert "extra time" in str(plan)


def test_room_is_what_the_first_run_asked_for(monkeypatch):
    class Device:
        def left(self):
            return 199

    known = baseline.Baseline(resident=50, forecast=150)
    monkeypatch.setattr(baseline, "current_device", Device)
    assert not baseline.has_room(known)
    assert baseline.has_room(baseline.Baseline(resident=50, forecast=149))
