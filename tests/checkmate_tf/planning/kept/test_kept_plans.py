"""A plan that was made before is taken again where it fits: nothing is searched for or tried."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf import progress
from checkmate_tf.cli.main import main
from checkmate_tf.devices.current import current_device, planned_as
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.planning.kept.plan_store import plan_files
from checkmate_tf.planning.monitor import BudgetWatch
from solvers import CheckmateError, CheckmateWarning, simulate
from tests.checkmate_tf.planning.kept.starts import DEPTH, RULE, start
from tests.dense_steps import loss_and_gradient, some_weights
from tests.messages import announces, raises, warns

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture(scope="module")
def made(step, x, tmp_path_factory):
    """A first start: the folder with what it kept, its step, what the step returned, and said."""
    folder = tmp_path_factory.mktemp("made") / "plans"
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CHECKMATE_TF_PLANS", str(folder))
        patch.setattr(progress, "announce", lambda code, line, show=None: said.append(line))
        kept, result = start(step, x)
    return folder, kept, result, said


@pytest.fixture
def first(made, folder):
    """The step of the first start, whose plan is in the folder."""
    shutil.copytree(made[0], folder)
    return made[1]


def the_file():
    [path] = plan_files()
    return path


def test_the_second_time_nothing_is_searched_for_or_tried(made, first, step, x, searches, capsys):
    _, _, expected, [said] = made
    assert said.endswith("plan kept")
    assert len(the_file().read_text()) > 1000
    second, result = start(step, x)
    assert searches == []
    assert second.plan.schedule == first.plan.schedule
    assert second.plan.measured_peak == first.plan.measured_peak
    assert second.plan.measured_baseline_peak == first.plan.measured_baseline_peak
    assert set(second.plan.seconds) == {"trace", "extract", "emit"}
    assert "by a plan kept before" in capsys.readouterr().err
    for one, other in zip(result, expected, strict=True):
        assert one.numpy().tobytes() == other.numpy().tobytes()
    if held_bytes() is not None:
        assert checkmate_tf.measure_peak(second, x) <= second.plan.budget


def test_a_kept_plan_runs_before_training_where_the_first_run_holds_more(
    made, first, step, x, searches
):
    with planned_as(replace(current_device(), tries_kernels=True)):
        second, result = start(step, x)
    assert searches == []
    assert "trials" in second.plan.seconds
    assert second.plan.first_peak > second.plan.graph.fixed_bytes
    for one, other in zip(result, made[2], strict=True):
        assert one.numpy().tobytes() == other.numpy().tobytes()
    untried, _ = start(step, x, trial_run=False)
    assert untried.plan.first_peak is None


_START = """
import tensorflow as tf
import checkmate_tf
from tests.dense_steps import SIZE, loss_and_gradient, some_weights

step = loss_and_gradient(some_weights(), 24)
checkmate_tf.rematerialize(step, budget=0.9, time_limit=5)(tf.ones((2048, SIZE)))
"""


@pytest.mark.slow
def test_a_process_that_has_measured_the_device_keeps_its_plan_for_the_next_one(tmp_path):
    """Costs are measured once, by the first one."""
    environment = {
        **os.environ,
        "CHECKMATE_TF_CACHE": str(tmp_path / "profiles"),
        "CHECKMATE_TF_PLANS": str(tmp_path / "plans"),
        "TF_CPU_ALLOCATOR_USE_BFC": "true",
    }
    said = [
        subprocess.run(
            [sys.executable, "-c", _START],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stderr
        for _ in range(2)
    ]
    assert list((tmp_path / "profiles").iterdir())
    assert "plan kept" in said[0]
    assert "by a plan kept before" in said[1], said[1]


@pytest.mark.parametrize("options", [{"budget": 0.95}, {"time_limit": 6}])
def test_another_question_has_another_answer(first, step, x, searches, options):
    start(step, x, **options)
    assert "PlanSearch" in searches
    assert len(plan_files()) == 2


def test_another_size_is_another_step(first, step, x, searches):
    start(step, x[:2000])
    assert "PlanSearch" in searches
    assert len(plan_files()) == 2


def test_another_learning_rate_is_no_other_step(first, step, x, searches):
    """Constants change no schedule, and the result is that of the new one."""
    kept = checkmate_tf.rematerialize(lambda each: step(each, rate=3.0), **RULE)
    loss, _ = kept(x)
    assert searches == []
    assert float(loss) == pytest.approx(float(step(x, rate=3.0)[0]), rel=1e-4)


def test_another_release_of_tensorflow_plans_anew_and_says_why(first, step, x, searches, capsys):
    path = the_file()
    text = path.read_text()
    path.rename(path.with_name(f"{path.name[:17]}{'0' * 16}.json"))
    the_file().write_text(
        text.replace(f'"tensorflow": "{tf.__version__}"', '"tensorflow": "2.1.0"')
    )
    with announces("kept-plan-unfit", "its tensorflow is 2.1.0", tf.__version__):
        start(step, x)
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert "PlanSearch" in searches


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda text: text[: len(text) // 2], "column "),
        (lambda text: text.replace('"peak": ', '"peak": 1'), "peak is 1"),
        (lambda text: text.replace('"baseline": {', '"baseline": {"resident": "x", "a": {'), ""),
        (lambda text: '{"kept": {"key": {}}}', ""),
        (lambda text: "[]", "'kept'"),
    ],
)
def test_a_broken_file_is_replaced_and_that_is_said(first, step, x, damage, named):
    path = the_file()
    path.write_text(damage(path.read_text()))
    with announces("kept-plan-unreadable", path, named):
        second, _ = start(step, x)
    assert json.loads(the_file().read_text())["schedule"] == list(second.plan.schedule.steps)


def test_a_plan_of_another_graph_is_never_run(first, step, x):
    """Even if its file lies under the name of this step's."""
    path = the_file()
    mine = json.loads(path.read_text())
    path.unlink()
    start(loss_and_gradient(some_weights(), DEPTH - 1), x)
    other = json.loads(the_file().read_text())
    the_file().unlink()
    other["kept"]["key"] = mine["kept"]["key"]
    path.write_text(json.dumps(other))
    with announces("plan-not-taken", "another step"):
        again, result = start(step, x)
    assert len(again.plan.graph) == len(mine["computation_graph"]["nodes"])
    assert float(result[0]) == pytest.approx(float(step(x)[0]), rel=1e-4)


def test_a_step_over_its_budget_replaces_what_was_kept(first, step, x, counted):
    before = json.loads(the_file().read_text())
    second, _ = start(step, x)
    beside = tf.zeros((second.plan.budget - held_bytes(),), tf.uint8)
    with pytest.warns(CheckmateWarning) as caught:
        second(x)
    assert caught[0].message.code.startswith("over-budget-")  # there may be no leaner plan
    found = [json.loads(path.read_text()) for path in plan_files()]
    assert [each["schedule"] for each in found] != [before["schedule"]]
    del beside


def test_a_step_over_its_budget_in_fit_is_planned_anew_at_the_next_start():
    called = []
    x = tf.ones((1 << 20,))
    watch = BudgetWatch(1, lambda: called.append(True))
    with warns("over-budget-plan-kept"):
        watch.run(lambda: x + 1)
    watch.run(lambda: x + 1)
    assert called == [True]


def test_off_keeps_nothing_and_finds_nothing(first, step, x, monkeypatch, searches, folder, capsys):
    monkeypatch.setenv("CHECKMATE_TF_PLANS", "off")
    start(step, x)
    assert "PlanSearch" in searches
    assert "plan not kept" in capsys.readouterr().err
    monkeypatch.setenv("CHECKMATE_TF_PLANS", str(folder))
    assert len(plan_files()) == 1


def test_a_folder_that_cannot_be_written_is_said_and_no_more(step, x, monkeypatch, folder, capsys):
    folder.write_text("")  # a file
    start(step, x)
    assert "plan not kept: " in capsys.readouterr().err


def test_silence(first, step, x, capsys):
    start(step, x, verbose=0)
    the_file().write_text("{")
    start(step, x, verbose=0)
    assert capsys.readouterr().err == ""
    with raises(CheckmateError, "argument-invalid", "verbose", "'no'"):
        start(step, x, verbose="no")


# Plans that the user names.


def test_a_named_plan_needs_no_budget(made, step, x, searches, tmp_path, capsys):
    _, first, expected, _ = made
    # With room for what other tests have left on the device.
    roomy = replace(first.plan, budget=first.plan.budget + (64 << 20))
    roomy.save(tmp_path / "plan.json")
    for plan in (str(tmp_path / "plan.json"), roomy):
        gc.collect()
        kept = checkmate_tf.rematerialize(step, plan=plan)
        result = kept(x)
        assert kept.plan.schedule == first.plan.schedule
        assert kept.plan.budget == roomy.budget
        assert result[1].numpy().tobytes() == expected[1].numpy().tobytes()
    assert searches == []
    assert "by the plan that was named" in capsys.readouterr().err
    assert plan_files() == []


def test_a_named_plan_of_another_step_is_an_error(made, step, x):
    plan = made[1].plan
    other = checkmate_tf.rematerialize(loss_and_gradient(some_weights(), DEPTH - 1), plan=plan)
    with raises(CheckmateError, "plan-of-another-step", "'step'"):
        other(x)
    smaller = checkmate_tf.rematerialize(step, plan=plan)
    with raises(CheckmateError, "plan-of-another-step", "node 0", "KiB"):
        smaller(x[:2000])


def test_a_named_plan_is_for_one_signature_and_others_are_planned(made, step, x, searches):
    kept, _ = start(step, x, plan=made[1].plan)
    assert searches == []
    kept(x[:2000])
    assert "PlanSearch" in searches


def test_what_is_named_as_a_plan_is_one():
    with raises(CheckmateError, "argument-invalid", "plan is 7"):
        checkmate_tf.rematerialize(lambda x: x, plan=7)


def test_what_solve_plans_for_an_extracted_graph_can_be_run(step, x, tmp_path):
    """`checkmate-tf extract`, `checkmate-tf solve --output`, and training by it."""
    concrete = tf.function(step).get_concrete_function(tf.TensorSpec(x.shape))
    graph = checkmate_tf.extract(concrete)
    graph.save(tmp_path / "graph.json")
    arguments = ["solve", str(tmp_path / "graph.json"), "--budget", "80%"]
    arguments += ["--solver", "linearized_greedy", "--output", str(tmp_path / "plan.json")]
    assert main(arguments) == 0
    plan = checkmate_tf.Plan.load(tmp_path / "plan.json")
    kept = checkmate_tf.rematerialize(step, plan=plan, budget="1GiB")
    loss, gradient = kept(x)
    assert kept.plan.schedule == plan.schedule
    assert simulate(graph, plan.schedule).peak == plan.predicted_peak
    expected = tf.function(step)(x)
    assert float(loss) == pytest.approx(float(expected[0]), rel=1e-4)
    assert tf.reduce_max(tf.abs(gradient - expected[1])) < 1e-2 * tf.reduce_max(tf.abs(gradient))
