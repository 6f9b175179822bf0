"""A plan by layers: by hand, and beside the simulator's count."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from checkmate_tf.graph.extraction import extract
from checkmate_tf.plans.layers import Layer, layer_names, layers_of, peak_of
from checkmate_tf.plans.pictures import memory_by_layer
from checkmate_tf.plans.table import by_layers
from solvers import ComputationGraph, Node, Schedule, simulate
from tests.graphs import random_graphs
from tests.solvers.graph.test_lifetimes import random_schedule
from tests.steps import random_batch, small_cnn

# Two layers forward, a loss, and back; the second layer is left with what the first one made.
NODES = (
    Node("net_1/one_1/matmul", 2.0, 40),
    Node("net_1/two_1/matmul", 3.0, 80, dependencies=(0,)),
    Node("loss/square", 1.0, 8, dependencies=(1,)),
    Node("gradient_tape/net_1/two_1/matmul", 3.0, 40, 16, dependencies=(1, 2), backward=True),
    Node("gradient_tape/net_1/one_1/matmul", 2.0, 40, dependencies=(0, 3), backward=True),
    Node("update", 1.0, 4, dependencies=(4,)),
)
GRAPH = ComputationGraph(NODES, fixed_bytes=100, cost_unit="s")


def test_layers_have_the_users_names() -> None:
    assert layer_names(GRAPH) == ("one", "two", "loss", "two", "one", "update")


def test_what_is_kept_and_what_is_recomputed() -> None:
    assert layers_of(GRAPH, Schedule(range(6))) == [
        Layer("two", 80, 0, 0.0),
        Layer("one", 40, 0, 0.0),
        Layer("loss", 8, 0, 0.0),
    ]
    again = layers_of(GRAPH, Schedule([0, 1, 2, 1, 3, 0, 4, 5]))
    assert again == [
        Layer("two", 0, 80, 3.0),
        Layer("one", 0, 40, 2.0),
        Layer("loss", 8, 0, 0.0),
    ]


def test_who_holds_the_peak() -> None:
    peak = peak_of(GRAPH, Schedule(range(6)))
    # At the gradient of the second layer: what both made, the loss, the gradient, a workspace.
    assert (peak.bytes, peak.place, peak.layer, peak.backward) == (284, 3, "two", True)
    assert peak.holders == (("two", 136), ("variables and inputs", 100), ("one", 40), ("loss", 8))


@given(random_graphs(), st.data())
def test_holders_are_all_that_the_simulator_counts(
    graph: ComputationGraph, data: st.DataObject
) -> None:
    schedule = random_schedule(graph, data)
    simulation = simulate(graph, schedule)
    peak = peak_of(graph, schedule)
    assert peak.bytes == sum(size for _, size in peak.holders) == simulation.peak
    held = memory_by_layer(graph, schedule)
    assert np.array_equal(np.sum(list(held.values()), axis=0), simulation.timeline)


def test_a_keras_model_is_shown_by_its_layers() -> None:
    keras.utils.clear_session()  # its layers get the names of a first model
    model = small_cnn(side=16)
    concrete = tf.function(model.train_step).get_concrete_function(random_batch(side=16))
    graph = extract(concrete)
    found = {each.name for each in layers_of(graph, Schedule(range(len(graph))))}
    layers = {each.name for each in model.layers}
    assert found <= layers
    # Each of these makes what the backward pass reads; what runs with another one has its name.
    assert {f"conv2d_{number}" for number in (1, 2, 3, 4)} <= found
    assert {"conv2d", "batch_normalization_1"} <= found
    assert graph.name == "train_step"


@pytest.mark.parametrize("count", [1, 3, 40])
def test_lines_fit_a_terminal_and_end(count: int) -> None:
    name = "a_very_long_name_of_a_model/and_of_a_layer_that_ends_with_its_number_"
    nodes = []
    for number in range(count):
        reads = (number - 1,) if number else ()
        nodes.append(Node(f"{name}{number}/op", 0.001, 1 << 40, dependencies=reads))
    last = Node("gradient", 1.0, 8, dependencies=tuple(range(count)), backward=True)
    lines = by_layers(ComputationGraph((*nodes, last)), Schedule(range(count + 1)))
    assert max(map(len, lines)) < 80
    assert len(lines) < 32
