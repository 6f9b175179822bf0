"""`checkmate-tf largest-batch`, and costs by name, from the command line's point of view."""

from __future__ import annotations

import json
import re

import pytest

from checkmate_tf import progress
from checkmate_tf.cli.main import main
from profiles.store import profile_files
from solvers import ComputationGraph
from tests.user_modules import user_module

MODULE = """
import tensorflow as tf

def _step(x):
    with tf.GradientTape() as tape:
        for _ in range(6):
            x = tf.tanh(x @ weights)
        loss = tf.reduce_sum(x)
    return loss, tape.gradient(loss, weights)

weights = tf.Variable(tf.ones((64, 64)))
any_batch = tf.function(_step, input_signature=[tf.TensorSpec((None, 64))])
one_batch = tf.function(_step, input_signature=[tf.TensorSpec((8, 64))])

def step_and_batch():
    return _step, (tf.TensorSpec((None, 64)),)

def no_step():
    return 3
"""

ELSEWHERE = ["--device-memory", "64MiB", "--time-limit", "0.5"]


@pytest.fixture(autouse=True)
def _user_module(tmp_path, monkeypatch):
    with user_module("user_batches", MODULE, tmp_path, monkeypatch):
        yield


def test_without_a_terminal_lines_say_where_it_is(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_SECONDS", 1e-3)
    assert main(["largest-batch", "user_batches:any_batch", *ELSEWHERE]) == 0
    said = capsys.readouterr().err
    assert re.search(r"^largest batch: 0:00:\d\d tracing the step$", said, re.MULTILINE)
    assert re.search(
        r"^largest batch: 0:00:\d\d planning a batch of \d+ in full$", said, re.MULTILINE
    )


@pytest.mark.parametrize("function", ["any_batch", "step_and_batch"])
def test_for_another_device(function, tmp_path, capsys):
    output = tmp_path / "plan.json"
    asked = ["largest-batch", f"user_batches:{function}", *ELSEWHERE, "--costs", "roofline:GPU"]
    assert main([*asked, "--output", str(output)]) == 0
    text = capsys.readouterr().out
    assert "planned for another device" in " ".join(text.split())
    plan = json.loads(output.read_text())
    assert plan["batch_size"] > 64 * 2**20 / (64 * 4 * 10)  # of 7 values and their gradients
    assert f"largest batch         {plan['batch_size']} " in text


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["any_batch", "--budget", "20KiB", *ELSEWHERE], 3, "too small for a batch of 1"),
        (["one_batch", *ELSEWHERE], 2, "traced for one batch size"),
        (["no_step", *ELSEWHERE], 2, "gives no step"),
        (["any_batch", "--budget", "80%"], 2, "give bytes"),
        (["any_batch", "--budget", "2MiB", "--costs", "v100"], 2, "no cost model 'v100'"),
        (["any_batch", "--budget", "2MiB", "--costs", "v100.json"], 2, "cannot be read"),
    ],
)
def test_what_goes_wrong(arguments, status, message, capsys):
    name, *rest = arguments
    assert main(["largest-batch", f"user_batches:{name}", *rest]) == status
    assert message in capsys.readouterr().err


def test_extract_takes_costs_of_other_devices_by_name(tmp_path):
    shipped = [path.stem for path in profile_files()]
    costs = []
    for name in ("roofline:CPU", "roofline:GPU", *shipped):
        output = tmp_path / "graph.json"
        asked = ["extract", "user_batches:one_batch", "--output", str(output), "--other-device"]
        assert main([*asked, "--costs", name]) == 0
        costs.append(ComputationGraph.load(output).one_pass_cost)
    assert len(set(costs)) == len(costs)


def test_a_profile_of_another_device_is_refused_unless_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("checkmate_tf.graph.cost_models.device_name", lambda device: "a laptop")
    name = profile_files()[0].stem
    asked = ["extract", "user_batches:one_batch", "--output", str(tmp_path / "graph.json")]
    assert main([*asked, "--costs", name]) == 2
    assert "of another device" in capsys.readouterr().err
