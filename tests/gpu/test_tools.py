"""What examines a step without training it, and what examines the installation, on a GPU."""

from __future__ import annotations

import json

import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.cli.main import main
from checkmate_tf.doctor.device import device
from checkmate_tf.doctor.steps import compare, what_is_wrong
from profiles.devices import device_name
from solvers import ComputationGraph
from tests.costs import sweep
from tests.gpu import is_stand_in
from tests.gpu.steps import BATCH, GPU, SIZE, dense, nothing_is_said, peaks_of, rows

BYTES = 2 << 30


def step_and_example():
    """What a command is given as MODULE:FUNCTION."""
    return dense(), rows(BATCH)


def compiled_step_and_example():
    return dense("auto"), rows(BATCH)


def signed():
    w = tf.Variable(tf.zeros((SIZE, SIZE)))

    @tf.function(input_signature=[tf.TensorSpec((None, SIZE))])
    def step(x):
        with tf.GradientTape() as tape:
            for _ in range(6):
                x = tf.tanh(x @ w)
            loss = tf.reduce_sum(x)
        w.assign_sub(tape.gradient(loss, w))
        return loss

    return step


def of_this_module(function):
    return f"{__name__}:{function.__name__}"


def test_the_doctors_line_on_the_device():
    found = device()
    facts = dict(found.facts)
    assert found.works
    assert facts["device"] == f"{GPU}: {device_name(GPU)}"
    assert facts["TensorFlow sees"].endswith(GPU)
    assert "BFC" in facts["memory counted by"]
    assert facts["Keras compiles"] == "by XLA"


@pytest.mark.parametrize("compiled", [False, True])
def test_the_doctors_step(compiled):
    seen = compare(64, compiled, side=64, time_limit=2)
    assert seen.plan is not None
    assert (seen.plan.compiled_peak is not None) == compiled
    if not compiled:
        assert seen.peaks[1] <= seen.plan.budget < seen.peaks[0]
    if not is_stand_in():
        assert not what_is_wrong(seen, exact=False)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_the_largest_batch(jit_compile):
    """It trains within the bytes that it was asked for."""
    model = dense(jit_compile)
    held = tf.config.experimental.get_memory_info(GPU)["current"]
    found = checkmate_tf.largest_batch(model, BYTES + held, rows(64), time_limit=2, overhead=0.3)
    assert found.batch_size > found.unchanged > BATCH
    data = tuple(map(tf.constant, rows(found.batch_size)))
    step = checkmate_tf.rematerialize(model.train_step, budget=BYTES + held, plan=found.plan)
    function = tf.function(lambda data: step(data), jit_compile=True) if jit_compile else step
    with nothing_is_said():
        peaks = peaks_of(function, data)
    assert max(peaks) <= BYTES + held


@pytest.mark.parametrize("jit_compile", [False, True])
def test_what_each_budget_costs(jit_compile):
    found = checkmate_tf.tradeoff(dense(jit_compile), rows(BATCH), points=3, time_limit=4)
    budgets = [point.plan.budget for point in found]
    assert budgets == sorted(budgets, reverse=True)
    assert len(set(budgets)) > 1


def test_the_command_extract(tmp_path, capsys):
    file = tmp_path / "graph.json"
    assert main(["extract", of_this_module(step_and_example), "--output", str(file)]) == 0
    graph = ComputationGraph.load(file)
    assert str(len(graph)) in capsys.readouterr().out
    assert graph.cost_unit == "s"


@pytest.mark.parametrize("made", sweep([step_and_example, signed, compiled_step_and_example], 2))
def test_the_command_largest_batch(made, tmp_path):
    held = tf.config.experimental.get_memory_info(GPU)["current"]
    file = tmp_path / "plan.json"
    command = ["largest-batch", of_this_module(made), "--budget", str(BYTES + held)]
    assert main([*command, "--time-limit", "2", "--output", str(file)]) == 0
    document = json.loads(file.read_text())
    assert document["batch_size"] > 1
    assert document["budget"] <= BYTES + held


def test_the_command_tradeoff(tmp_path):
    command = ["tradeoff", of_this_module(step_and_example), "--points", "2"]
    assert main([*command, "--time-limit", "2", "--output", str(tmp_path)]) == 0
    assert len(list(tmp_path.glob("plan-*.json"))) >= 1
