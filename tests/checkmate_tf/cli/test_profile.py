"""`checkmate-tf profile` and `profiles`, from the command line's point of view."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from checkmate_tf.cli.main import main
from profiles import store
from profiles.operation import Operation
from profiles.profile import Measurement, Profile
from profiles.profile_files import read_profile, save_profile
from solvers.graph.layer_graphs import unit_chain
from tests.user_modules import user_module

MODULE = """
import tensorflow as tf

@tf.function(input_signature=[tf.TensorSpec((None, 256))])
def profiled_step(x):
    return tf.reduce_sum(tf.tanh(x @ tf.ones((256, 256))) + tf.random.uniform((256,)))

def step_and_batch():
    return lambda x: tf.reduce_sum(tf.tanh(x @ tf.ones((256, 256)))), tf.ones((64, 256))

def needs_arguments(x):
    return x
"""
TARGET = ["profile", "profiled_steps:profiled_step", "--batch-size", "64"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    with user_module("profiled_steps", MODULE, tmp_path, monkeypatch):
        yield tmp_path / "cache"


def test_a_step_as_a_table_and_a_plot(tmp_path, capsys):
    plot = tmp_path / "plot.png"
    assert main([*TARGET, "--plot", str(plot)]) == 0
    output = capsys.readouterr().out
    assert "MatMul" in output
    assert "64×256" in output
    assert max(map(len, output.replace(str(tmp_path), "").splitlines())) <= 80
    assert plot.stat().st_size > 10_000


def test_a_step_and_an_example_batch_are_taken_as_plan_takes_them(tmp_path, capsys):
    assert main(["profile", "profiled_steps:step_and_batch"]) == 0
    assert "64×256" in capsys.readouterr().out
    graph = tmp_path / "graph.json"
    assert main(["extract", "profiled_steps:step_and_batch", "--output", str(graph)]) == 0
    assert graph.exists()


def test_what_gives_no_step(capsys):
    assert main(["profile", "profiled_steps:needs_arguments"]) == 2
    assert "can't be called without arguments" in capsys.readouterr().err


def test_what_is_estimated_is_counted(capsys):
    assert main(TARGET) == 0
    printed = " ".join(capsys.readouterr().out.split())
    # RandomUniform is stateful, so it can't run by itself.
    assert re.search(r"note: 1 of \d+ operations are not in the profile of", printed)


def test_a_second_time_nothing_is_measured(cache):
    assert main(TARGET) == 0
    (path,) = cache.iterdir()
    before = path.read_text()
    assert main(TARGET) == 0
    assert path.read_text() == before
    assert main([*TARGET, "--again"]) == 0
    assert path.read_text() != before


def test_another_devices_profile_only_if_asked_for(tmp_path, capsys):
    path = str(tmp_path / "v100.json")
    save_profile(Profile("Tesla V100", "2.21.0", {Operation("Relu"): Measurement(1.0, 0)}), path)
    assert main([*TARGET, "--profile", path]) == 2
    assert "measured on 'Tesla V100'" in capsys.readouterr().err
    assert main([*TARGET, "--profile", path, "--other-device"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert re.search(r"(\d+) of \1 operations are not in the profile of Tesla V100: 100", printed)


def test_a_saved_graph_shows_what_it_holds(tmp_path, capsys):
    graph = str(tmp_path / "graph.json")
    unit_chain(4).save(graph)
    assert main(["profile", graph, "--plot", str(tmp_path / "plot.pdf")]) == 0
    assert "costs and memory are those that the graph was saved with" in capsys.readouterr().out
    assert main(["profile", graph, "--device", "CPU:0"]) == 2
    assert "extract … --costs profile" in capsys.readouterr().err


def test_profiles_and_saved_graphs_need_no_tensorflow(tmp_path):
    graph = str(tmp_path / "graph.json")
    unit_chain(4).save(graph)
    program = (
        "import sys; sys.modules['tensorflow'] = sys.modules['keras'] = None\n"
        "from checkmate_tf.cli.main import main\n"
        f"sys.exit(main(['profile', {graph!r}]) + main(['profiles', 'list']))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_profiles_are_listed_merged_and_cleared(cache, tmp_path, capsys):
    relu, selu = Operation("Relu"), Operation("Selu")
    first = store.remember(Profile("A CPU", "2.21.0", {relu: Measurement(1.0, 0)}))
    second = tmp_path / "second.json"
    save_profile(Profile("A CPU", "2.21.0", {selu: Measurement(2.0, 0)}), second)
    merged = tmp_path / "merged.json"
    assert main(["profiles", "merge", str(first), str(second), "--output", str(merged)]) == 0
    assert read_profile(merged).entries == {relu: Measurement(1.0, 0), selu: Measurement(2.0, 0)}
    capsys.readouterr()
    assert main(["profiles", "list"]) == 0
    assert "A CPU" in capsys.readouterr().out
    assert main(["profiles", "clear", "--device", "B CPU"]) == 0
    assert first.exists()
    assert main(["profiles", "clear"]) == 0
    assert not first.exists()
    assert "deleted" in capsys.readouterr().out


def test_profiles_of_two_devices_do_not_merge(tmp_path, capsys):
    files = []
    for device in ("one", "two"):
        files.append(str(tmp_path / f"{device}.json"))
        save_profile(Profile(device, "2.21.0"), files[-1])
    merged = tmp_path / "merged.json"
    assert main(["profiles", "merge", *files, "--output", str(merged)]) == 2
    assert "measured on 'two', and this is 'one'" in capsys.readouterr().err
    assert not merged.exists()
