"""`checkmate-tf plan` and `checkmate-tf show`: ahead of time, and into training."""

from __future__ import annotations

import json
import re
from importlib import import_module

import pytest

import checkmate_tf
from checkmate_tf.cli.main import main
from tests.checkmate_tf.plans.test_documents import plan_of_a_step
from tests.dense_steps import numbers, same, variables
from tests.graphs import SKIP
from tests.user_modules import user_module

MODULE = """
import tensorflow as tf
from tests.dense_steps import dense_model, loss_and_gradient, numbers, some_weights

one_size = tf.function(
    loss_and_gradient(some_weights(), 8), input_signature=[tf.TensorSpec((256, 64))]
)
nothing = tf.function(lambda x: x + 1, input_signature=[tf.TensorSpec((256, 64))])

def model_and_batch():
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    return model, numbers(256)

def compiled_model_and_batch():
    model = dense_model(depth=6)
    model.compile("sgd", "mse", jit_compile=True)
    return model, numbers(2048)
"""

QUICK = ["--budget", "90%", "--solver", "linearized_greedy", "--time-limit", "2"]


@pytest.fixture(autouse=True)
def _user_module(tmp_path, monkeypatch):
    with user_module("user_steps", MODULE, tmp_path, monkeypatch):
        yield


def test_a_plan_made_ahead_of_time_trains_a_model_in_fit(tmp_path, capsys):
    output = str(tmp_path / "plan.json")
    asked = ["plan", "user_steps:model_and_batch", *QUICK, "--no-trial-run"]
    assert main([*asked, "--output", output]) == 0
    assert f"rematerialize(step, plan={output!r})" in capsys.readouterr().out
    plan = checkmate_tf.Plan.load(output)
    make = import_module("user_steps").model_and_batch
    (plain, data), (ours, _) = make(), make()
    # Room for what other tests have left on the device.
    checkmate_tf.rematerialize(ours, plan=plan, budget="1GiB")
    for model in (plain, ours):
        model.fit(*numbers(512), batch_size=256, epochs=1, verbose=0, shuffle=False)
    assert ours.train_step.plan.schedule == plan.schedule
    assert "by the plan that was named" in capsys.readouterr().err
    same(variables(ours), variables(plain))
    assert len(data) == 2


def test_a_plan_for_xla_made_ahead_of_time_is_the_one_that_trains(tmp_path, capsys):
    output = str(tmp_path / "plan.json")
    asked = ["plan", "user_steps:compiled_model_and_batch", "--budget", "80%", *QUICK[2:]]
    assert main([*asked, "--output", output]) == 0
    assert "(compiled)" in capsys.readouterr().out
    plan = checkmate_tf.Plan.load(output)
    assert plan.compiled_peak <= plan.budget < plan.compiled_baseline_peak
    assert plan.measured_peak is None
    model, data = import_module("user_steps").compiled_model_and_batch()
    checkmate_tf.rematerialize(model, plan=plan, budget="1GiB")
    model.fit(*data, batch_size=2048, epochs=1, verbose=0)
    assert model.jit_compile
    assert model.train_step.plan.schedule == plan.schedule
    assert model.train_step.plan.compiled_peak is not None
    assert "by the plan that was named" in capsys.readouterr().err


def test_for_another_device_nothing_runs(tmp_path, capsys):
    output = tmp_path / "plan.json"
    asked = ["plan", "user_steps:one_size", *QUICK, "--elsewhere", "--costs", "roofline:GPU"]
    assert main([*asked, "--output", str(output)]) == 0
    plan = checkmate_tf.Plan.load(output)
    assert plan.measured_peak is None
    assert plan.origin.device == "another device"
    capsys.readouterr()
    picture = tmp_path / "plan.png"
    assert main(["show", str(output), "--plot", str(picture)]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^step +step, batch 256$", printed, re.MULTILINE)
    assert re.search(r"^file +a plan by itself", printed, re.MULTILINE)
    assert "peak of live values" in printed
    assert max(map(len, printed.splitlines()[:-1])) <= 80
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(("keeps", "said"), [(True, "50%, within it"), (False, "50%, likely to")])
def test_a_kept_plan_says_so(keeps, said, tmp_path, capsys):
    path = tmp_path / "kept.json"
    kept = {"key": {"budget": "50%"}, "keeps": keeps}
    path.write_text(json.dumps({**plan_of_a_step().to_json(), "kept": kept}))
    assert main(["show", str(path)]) == 0
    printed = capsys.readouterr().out
    assert f"kept for budget {said}" in printed
    assert "batch 16, adam" in printed


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["plan", "user_steps:one_size", "--budget", "1KiB", "--elsewhere"], 3, "too small"),
        (["plan", "user_steps:one_size", "--budget", "x"], 2, "'x' is not a size"),
        (["plan", "user_steps:nothing", "--budget", "50%"], 2, "nothing in it can be recomputed"),
        (["plan", "user_steps:nobody", "--budget", "50%"], 2, "nobody"),
    ],
)
def test_what_goes_wrong(arguments, status, message, tmp_path, capsys):
    output = tmp_path / "plan.json"
    assert main([*arguments, "--time-limit", "1", "--output", str(output)]) == status
    error = capsys.readouterr().err
    assert message in error
    assert not output.exists()


def test_what_solve_writes_is_shown(tmp_path, capsys):
    graph, output = tmp_path / "graph.json", tmp_path / "plan.json"
    SKIP.save(graph)
    asked = ["solve", str(graph), "--budget", "7", "--solver", "cutting_planes"]
    assert main([*asked, "--output", str(output)]) == 0
    capsys.readouterr()
    assert main(["show", str(output), "--plot", str(tmp_path / "plan.svg")]) == 0
    assert "20.0 % (predicted)" in capsys.readouterr().out
    output.write_text("{}")
    assert main(["show", str(output)]) == 2
    assert "not a plan" in capsys.readouterr().err
