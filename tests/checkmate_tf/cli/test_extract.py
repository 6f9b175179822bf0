"""The commands that need TensorFlow, from the command line's point of view."""

from __future__ import annotations

import pytest
import tensorflow as tf

from checkmate_tf.cli.main import main
from checkmate_tf.cli.target import load_program
from checkmate_tf.graph.step_operations import step_operations
from profiles import store
from profiles.devices import device_name
from solvers import ComputationGraph
from tests.user_modules import user_module

MODULE = """
import tensorflow as tf

@tf.function(input_signature=[tf.TensorSpec((256, 256))])
def step(x):
    return tf.reduce_sum(tf.tanh(x @ x) @ x)

number = 3
"""


@pytest.fixture(autouse=True)
def _user_module(tmp_path, monkeypatch):
    with user_module("user_steps", MODULE, tmp_path, monkeypatch):
        yield


def test_extract_saves_a_graph_that_solve_reads(tmp_path, capsys):
    output = tmp_path / "graph.json"
    assert main(["extract", "user_steps:step", "--output", str(output)]) == 0
    assert "nodes" in capsys.readouterr().out
    assert any("MatMul" in node.operations for node in ComputationGraph.load(output).nodes)
    assert main(["solve", str(output), "--budget", "100%", "--solver", "checkpoint_all"]) == 0


def test_extract_saves_measured_costs(tmp_path):
    for costs in ("roofline", "profile"):
        output = str(tmp_path / f"{costs}.json")
        assert main(["extract", "user_steps:step", "--output", output, "--costs", costs]) == 0
    known = store.known_profile(device_name(), tf.__version__)
    measured = ComputationGraph.load(tmp_path / "profile.json").one_pass_cost
    # Every operation of this step can run by itself, so that nothing but the profile is in it.
    assert measured == pytest.approx(
        sum(
            known.entries[each.operation].seconds
            for each in step_operations(load_program("user_steps:step", None))
        ),
        rel=1e-3,
    )
    assert measured != ComputationGraph.load(tmp_path / "roofline.json").one_pass_cost


@pytest.mark.parametrize(
    "target", ["nowhere:step", "user_steps:nothing", "user_steps:number", "user_steps"]
)
def test_what_is_not_a_function_is_named(target, tmp_path, capsys):
    assert main(["extract", target, "--output", str(tmp_path / "graph.json")]) == 2
    assert target.partition(":")[0] in capsys.readouterr().err
    assert not (tmp_path / "graph.json").exists()
