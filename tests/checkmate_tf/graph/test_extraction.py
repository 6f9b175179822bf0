"""Graphs of whole train steps: complete, acyclic, with every byte in its place."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tensorflow as tf

from checkmate_tf.graph.extraction import extract_program, extract_step
from checkmate_tf.graph.step_operations import step_operations
from checkmate_tf.trace.fusions import fuses_into
from checkmate_tf.trace.inputs import waiting_for_arguments
from checkmate_tf.trace.operations import is_stateful
from profiles.profile import Measurement, Profile
from profiles.profiled import ProfiledCosts
from profiles.roofline import FloatingPointOperations, device_ceilings
from solvers import ComputationGraph, Schedule, simulate
from tests.steps import random_batch, small_cnn


@pytest.fixture(scope="module")
def extracted():
    model = small_cnn(dropout=0.3)
    return extract_step(tf.function(model.train_step).get_concrete_function(random_batch()))


def test_every_operation_is_in_exactly_one_place(extracted):
    placed = [m for node in extracted.nodes for m in node]
    placed += [m for attached in extracted.attached for m in attached]
    placed += extracted.prologue
    assert sorted(placed) == list(range(len(extracted.program.operations)))


def test_what_needs_no_batch_comes_first(extracted):
    """The count of iterations, for instance, but not the labels' type or an image's shape."""
    operations = [extracted.program.operations[number] for number in extracted.prologue]
    late = [
        operation.name in waiting_for_arguments(extracted.program.concrete, [operation])
        for operation in operations
    ]
    assert late == sorted(late)
    assert set(late) == {False, True}
    early = {each.type for each, waits in zip(operations, late, strict=True) if not waits}
    assert "AssignVariableOp" in early or "AssignAddVariableOp" in early


def test_few_nodes_for_many_operations(extracted):
    assert len(extracted.graph) < len(extracted.program.operations) / 3


def test_input_order_is_a_valid_schedule(extracted):
    graph = extracted.graph
    assert simulate(graph, Schedule(range(len(graph)))).cost == pytest.approx(graph.one_pass_cost)


def test_no_cost_is_zero_and_none_is_the_same_for_all(extracted):
    costs = [node.cost for node in extracted.graph.nodes]
    assert min(costs) > 0
    assert max(costs) > 5 * min(costs)


def test_convolutions_stay_with_their_biases(extracted):
    program = extracted.program
    node_of = {m: node for node, members in enumerate(extracted.nodes) for m in members}
    fused = 0
    for number, op in enumerate(program.operations):
        for tensor in program.reads[number]:
            fused_pair = fuses_into(program.operations[tensor.producer].type, op.type)
            if fused_pair and number in node_of:
                assert node_of[number] == node_of[tensor.producer]
                fused += 1
    assert fused == 6


def test_nodes_with_stateful_operations_run_once(extracted):
    for node, members in zip(extracted.graph.nodes, extracted.nodes, strict=False):
        stateful = any(is_stateful(extracted.program.operations[m]) for m in members)
        assert node.recomputable != stateful


def test_tiny_tensors_are_few_bytes_and_counted_as_fixed(extracted):
    tiny = sum(tensor.bytes for tensor in extracted.tiny)
    unchanged = simulate(extracted.graph, Schedule(range(len(extracted.graph)))).peak
    assert 0 < tiny < 0.02 * unchanged
    assert extracted.graph.fixed_bytes == extracted.program.fixed_bytes + tiny


def test_graph_survives_its_file(extracted, tmp_path):
    extracted.graph.save(tmp_path / "graph.json")
    assert ComputationGraph.load(tmp_path / "graph.json") == extracted.graph


def test_large_results_are_held_to_the_end():
    w = tf.Variable(tf.random.normal((256, 256)))

    @tf.function(input_signature=[tf.TensorSpec((256, 256))])
    def step(x):
        with tf.GradientTape() as tape:
            for _ in range(6):
                x = tf.tanh(x @ w)
            loss = tf.reduce_sum(x)
        return loss, tape.gradient(loss, w)

    graph = extract_step(step.get_concrete_function()).graph
    last = graph.nodes[-1]
    assert last.operations == ("Return",)
    assert [graph.nodes[i].memory for i in last.dependencies] == [256 * 256 * 4]


def test_a_gradient_is_applied_as_soon_as_it_exists(extracted):
    """In creation order all updates come last; in the graph's order they are among the rest."""
    graph = extracted.graph
    backward = [i for i, n in enumerate(graph.nodes) if "Conv2DBackpropInput" in n.operations]
    updates = [
        i
        for i, members in enumerate(extracted.nodes)
        for m in (*members, *extracted.attached[i])
        if extracted.program.operations[m].type == "AssignAddVariableOp"
    ]
    assert min(updates) < max(backward)


@pytest.mark.parametrize("costs", ["flops", "profile"])
def test_the_cost_model_decides_costs_and_nothing_else(extracted, costs):
    program = extracted.program
    if costs == "flops":
        model = FloatingPointOperations()
    else:  # a device so slow that nothing is negligible there
        operations = [each.operation for each in step_operations(program)]
        slow = Profile("a device", "2.21.0", {each: Measurement(1.0, 0) for each in operations})
        model = ProfiledCosts(slow, device_ceilings())
    other = extract_program(program, model)
    assert (other.nodes, other.attached, other.prologue, other.tiny) == (
        extracted.nodes,
        extracted.attached,
        extracted.prologue,
        extracted.tiny,
    )
    uncosted = [
        [replace(node, cost=0.0) for node in each.graph.nodes] for each in (other, extracted)
    ]
    assert uncosted[0] == uncosted[1]
    assert other.graph.one_pass_cost != extracted.graph.one_pass_cost
    assert other.graph.cost_unit == {"flops": "FLOP", "profile": "s"}[costs]
