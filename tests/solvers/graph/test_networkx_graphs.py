"""Graphs to and from networkx, beside networkx' own algorithms and its node-link form."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from solvers import ComputationGraph, GraphError, Node, solve
from tests.graphs import random_graphs
from tests.messages import raises


@given(random_graphs(most=9))
def test_there_and_back(graph: ComputationGraph) -> None:
    made = graph.to_networkx()
    assert nx.is_directed_acyclic_graph(made)
    assert set(made.edges) == set(graph.edges)
    back = ComputationGraph.from_networkx(made)
    unnumbered = replace(back, nodes=tuple(replace(node, id=None) for node in back.nodes))
    assert unnumbered == graph


def test_keys_are_the_ids() -> None:
    nodes = (Node("a", 1.0, 4, id="x"), Node("b", 1.0, 4, dependencies=(0,), id="y"))
    made = ComputationGraph(nodes, fixed_bytes=7, name="two").to_networkx()
    assert list(made.edges) == [("x", "y")]
    assert made.graph["order"] == ["x", "y"]
    assert ComputationGraph.from_networkx(made) == ComputationGraph(
        nodes, fixed_bytes=7, name="two"
    )


def test_a_graph_of_ones_own_can_be_solved() -> None:
    graph: nx.DiGraph[int] = nx.path_graph(6, nx.DiGraph())
    nx.set_node_attributes(graph, {key: np.int64(1) for key in graph}, "cost")
    nx.set_node_attributes(graph, 4, "memory")
    graph.add_edge(0, 5)
    solution = solve(ComputationGraph.from_networkx(graph), 12, time_limit=5)
    assert (solution.cost, solution.peak) == (6, 12)  # the first, the last, and the one that runs


def test_a_file_of_networkx_reads_the_same(tmp_path: Path) -> None:
    graph = ComputationGraph(
        (
            Node("a", 1.5, 4, workspace=2, operations=("MatMul",), id=0),
            Node("b", 1.0, 4, backward=True, recomputable=False, dependencies=(0,), id=1),
            Node("c", 1.0, 4, after=(0,), id=2),
        ),
        fixed_bytes=9,
        name="three",
        cost_unit="s",
    )
    path = tmp_path / "three.json"
    path.write_text(json.dumps(nx.node_link_data(graph.to_networkx(), edges="edges")))
    assert ComputationGraph.load(path) == graph


@pytest.mark.parametrize(
    ("graph", "told"),
    [
        (nx.Graph([(0, 1)]), ("graph-undirected",)),
        (nx.DiGraph(), ("graph-empty",)),
        (nx.DiGraph([((0, 1), (1, 2))]), ("node-id-invalid", "(0, 1)", "networkx.relabel_nodes")),
        (nx.DiGraph([(0, 1)]), ("field-missing", "node 0", "'cost' and 'memory'")),
    ],
)
def test_what_is_no_graph(graph: nx.Graph[int], told: tuple[str, ...]) -> None:
    with raises(GraphError, *told):
        ComputationGraph.from_networkx(graph)
