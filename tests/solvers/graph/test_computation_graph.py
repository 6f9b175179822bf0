from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from solvers import ComputationGraph, GraphError, Node, Schedule, simulate
from solvers.graph import input_order_peak
from tests.messages import raises


def test_what_follows_from_the_nodes() -> None:
    graph = ComputationGraph(
        (
            Node("a", 1.5, 4),
            Node("b", 2, 3, workspace=7, dependencies=(0,)),
            Node("c", 0.25, 2, dependencies=(1, 0, 1), after=(0,)),
        ),
        fixed_bytes=100,
    )
    assert len(graph) == 3
    assert graph.costs.tolist() == [1.5, 2, 0.25]
    assert graph.memories.tolist() == [4, 3, 2]
    assert graph.workspaces.tolist() == [0, 7, 0]
    assert [node.dependencies for node in graph.nodes] == [(), (0,), (0, 1)]
    assert graph.users == ((1, 2), (2,), ())
    assert graph.edges == ((0, 1), (0, 2), (1, 2))
    assert graph.one_pass_cost == 3.75
    assert input_order_peak(graph) == 100 + 4 + 3 + 7


def test_the_graph_without_nodes_is_empty() -> None:
    graph = ComputationGraph((), fixed_bytes=5)
    assert (len(graph), graph.one_pass_cost, input_order_peak(graph)) == (0, 0, 5)
    assert simulate(graph, Schedule([])).timeline.shape == (0,)


def _second(**values: Any) -> tuple[Node, ...]:
    return (Node("a", 1, 1), Node(**({"name": "b", "cost": 1, "memory": 1} | values)))


@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        (_second(cost=-1), ("field-invalid", "net: node 'b' (number 1)", "cost", -1)),
        (_second(cost=math.nan), ("field-invalid", "cost", "nan")),
        (_second(cost=math.inf), ("field-invalid", "cost", "inf")),
        (_second(cost="much"), ("field-invalid", "cost", "'much'")),
        (_second(memory=-4), ("field-invalid", "memory", -4)),
        (_second(workspace=-4), ("field-invalid", "workspace", -4)),
        (_second(cost=10**400), ("field-invalid", "cost", 1000)),
        (_second(memory=1.5), ("field-invalid", "memory", 1.5)),
        (_second(memory="4"), ("field-invalid", "memory", "'4'")),
        (_second(dependencies=("a",)), ("reference-out-of-order", "dependencies", "node a")),
        (_second(dependencies=(1,)), ("reference-out-of-order", "dependencies", "node 1")),
        (_second(dependencies=(-1,)), ("reference-out-of-order", "dependencies", "node -1")),
        (_second(after=(1,)), ("reference-out-of-order", "after", "node 1")),
        (_second(expired_by=(1,)), ("reference-out-of-order", "expired_by", "node 1")),
        (_second(expired_by=(2,)), ("reference-out-of-order", "expired_by", "node 2")),
    ],
)
def test_a_broken_node_is_refused_by_name(nodes: tuple[Node, ...], told: tuple[str, ...]) -> None:
    with raises(GraphError, *told):
        ComputationGraph(nodes, name="net")


@pytest.mark.parametrize("size", [-1, 1.5, math.nan, "4"])
def test_fixed_bytes_are_a_whole_number(size: Any) -> None:
    with raises(GraphError, "field-invalid", "net: fixed_bytes", repr(size)):
        ComputationGraph((), fixed_bytes=size, name="net")


def test_sizes_that_add_up_to_more_than_any_memory_are_refused() -> None:
    """The simulator counts in 64 bits: the sum would come out too small."""
    half = 2**62
    with raises(GraphError, "bytes-too-many", "net", 2**63):
        ComputationGraph(_second(memory=half, workspace=half - 1), name="net")
    with raises(GraphError, "bytes-too-many"):
        ComputationGraph(_second(), fixed_bytes=2**63 - 2)
    graph = ComputationGraph(_second(memory=half, workspace=half - 2))
    assert simulate(graph, Schedule([0, 1])).peak == 2**63 - 2


def test_costs_that_add_up_to_more_than_a_float_are_an_error() -> None:
    graph = ComputationGraph((Node("a", 1.7e308, 1), Node("b", 1e308, 1)), name="net")
    with raises(GraphError, "costs-too-large", "net", "1.79769e+308"):
        simulate(graph, Schedule([0, 1]))


def test_numbers_of_numpy_and_others_become_plain_ones() -> None:
    """So that JSON can hold them."""
    a = Node("a", np.float32(0.5), np.int64(4), workspace=np.uint8(2))
    b = Node("b", Fraction(1, 4), 4.0, dependencies=(np.int64(0),))
    graph = ComputationGraph((a, b), fixed_bytes=np.int64(7))
    assert ComputationGraph.from_json(json.loads(json.dumps(graph.to_json()))) == graph
