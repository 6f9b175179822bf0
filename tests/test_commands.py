"""The commands that need TensorFlow, from the command line's point of view."""

from __future__ import annotations

import pytest

from checkmate_tf.cli import main
from solvers import ComputationGraph

MODULE = """
import tensorflow as tf

@tf.function(input_signature=[tf.TensorSpec((256, 256))])
def step(x):
    return tf.reduce_sum(tf.tanh(x @ x) @ x)

number = 3
"""


@pytest.fixture(autouse=True)
def _user_module(tmp_path, monkeypatch):
    (tmp_path / "user_steps.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)


def test_extract_saves_a_graph_that_solve_reads(tmp_path, capsys):
    output = tmp_path / "graph.json"
    assert main(["extract", "user_steps:step", "--output", str(output)]) == 0
    assert "nodes" in capsys.readouterr().out
    assert any("MatMul" in node.operations for node in ComputationGraph.load(output).nodes)
    assert main(["solve", str(output), "--budget", "100%", "--solver", "checkpoint_all"]) == 0


def test_profile_shows_what_takes_time(capsys):
    assert main(["profile", "user_steps:step", "--device", "CPU:0"]) == 0
    output = capsys.readouterr().out
    assert "MatMul" in output
    assert "256×256" in output


@pytest.mark.parametrize(
    "target", ["nowhere:step", "user_steps:nothing", "user_steps:number", "user_steps"]
)
def test_what_is_not_a_function_is_named(target, tmp_path, capsys):
    assert main(["extract", target, "--output", str(tmp_path / "graph.json")]) == 2
    assert target.partition(":")[0] in capsys.readouterr().err
    assert not (tmp_path / "graph.json").exists()
