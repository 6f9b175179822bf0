"""Why a layer is recomputed, beside what the simulator says of the schedule with and without it."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf
from keras import layers

import checkmate_tf
from checkmate_tf.cli.main import main
from checkmate_tf.plans.explanation import explain
from checkmate_tf.plans.layers import layer_names
from checkmate_tf.plans.plan import Plan
from solvers import CheckmateError, Schedule, simulate
from tests.messages import raises


class Squared(layers.Layer):
    """A layer of the user's own, whose line is this file's."""

    def call(self, x):
        return tf.sort(x * x)


@pytest.fixture(scope="module")
def plan():
    keras.utils.set_random_seed(0)
    inner = [layers.Dense(256, activation="tanh", name=f"dense_{k}") for k in range(6)]
    model = keras.Sequential([keras.Input((256,)), *inner[:3], Squared(name="own"), *inner[3:]])
    model.compile("sgd", "mse", jit_compile=False)
    checkmate_tf.rematerialize(model, budget="min", time_limit=1, trial_run=False, verbose=0)
    model.fit(tf.ones((512, 256)), tf.ones((512, 256)), 512, verbose=0)
    found = model.train_step.plan
    assert len(found.schedule) > len(found.graph), "otherwise this tests nothing"
    return found


def test_every_computation_is_told_with_its_readers(plan):
    """And what keeping the one before it would take."""
    graph, steps = plan.graph, plan.schedule.steps
    told = {}
    for layer in dict.fromkeys(layer_names(graph)):
        for node in plan.explain(layer).nodes:
            told.update({each.place: (node, each) for each in node.computations})
    assert sorted(told) == list(range(len(steps)))
    for place, (node, each) in told.items():
        assert graph.nodes[steps[place]].name == node.name
        rest = list(steps[place + 1 :])
        end = rest.index(steps[place]) if steps[place] in rest else len(rest)
        reading = [n for n in rest[:end] if steps[place] in graph.nodes[n].dependencies]
        assert set(each.readers) == {graph.nodes[n].name for n in reading}
        is_first = steps.index(steps[place]) == place
        assert (each.kept_instead is None) == is_first
        if not is_first:
            without = Schedule((*steps[:place], *steps[place + 1 :]))
            assert each.kept_instead == simulate(graph, without).peak


def test_the_users_line_is_told_and_saved(plan, tmp_path, capsys):
    own = plan.explain("own")
    assert any(node.line.startswith(f"{__file__}:") for node in own.nodes)
    path = tmp_path / "plan.json"
    plan.save(path)
    assert Plan.load(path).explain("own") == own
    assert main(["explain", str(path), "own"]) == 0
    assert capsys.readouterr().out == f"{own}\n"
    assert main(["explain", str(path), "nowhere"]) == 2


def test_an_unknown_layer_names_those_near_it(plan):
    with raises(CheckmateError, "layer-unknown", "dense_3"):
        explain(plan.graph, plan.schedule, "dense_33")
