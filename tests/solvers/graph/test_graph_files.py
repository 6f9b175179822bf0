from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers import ComputationGraph, GraphError, Node
from tests.graphs import random_graphs
from tests.messages import raises

EVERY_FIELD = ComputationGraph(
    (
        Node("a", 0.1, 2**62, 3, ("Conv2D", "BiasAdd"), id="first", expired_by=(2,)),
        Node("b", 1e-7, 5, recomputable=False, dependencies=(0,), id=17),
        Node("ü", 3, 0, backward=True, dependencies=(1,), after=(0, 1)),
    ),
    fixed_bytes=123,
    name="every field",
    cost_unit="s",
)


def _file(folder: Path, document: Any, name: str = "net.json") -> Path:
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def _own(*nodes: Any, **others: Any) -> dict[str, Any]:
    return {"format": "checkmate_tf graph", "version": 1, "nodes": list(nodes), **others}


def _link(edges: list[Any], ids: list[Any], **others: Any) -> dict[str, Any]:
    nodes = [{"id": each, "cost_cpu": 1, "cost_ram": 1} for each in ids]
    links = [{"source": source, "target": target} for source, target in edges]
    return {"nodes": nodes, "links": links, **others}


def test_own_format_keeps_every_field(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    EVERY_FIELD.save(path)
    assert ComputationGraph.load(path) == EVERY_FIELD


@given(random_graphs(), st.data())
def test_own_format_is_exact(
    tmp_path_factory: pytest.TempPathFactory, graph: ComputationGraph, data: st.DataObject
) -> None:
    cost = st.floats(0, allow_infinity=False)
    nodes = tuple(replace(node, cost=data.draw(cost)) for node in graph.nodes)
    graph = replace(graph, nodes=nodes)
    path = tmp_path_factory.getbasetemp() / "exact.json"
    graph.save(path)
    assert ComputationGraph.load(path) == graph


def test_node_link_with_ids(tmp_path: Path) -> None:
    document = {
        "directed": True,
        "graph": {"name": "VGG"},
        "nodes": [
            {"name": "pool", "backward": False, "cost_cpu": 120, "cost_ram": 40, "id": 1},
            {"name": "conv", "backward": False, "cost_cpu": 385, "cost_ram": 3288334336, "id": 0},
            {"name": "grad", "backward": True, "cost_cpu": 0.5, "cost_ram": 4.0, "id": 2},
        ],
        "links": [{"source": s, "target": t} for s, t in ((0, 1), (1, 2), (0, 2), (0, 2))],
    }
    assert ComputationGraph.load(_file(tmp_path, document)) == ComputationGraph(
        (
            Node("conv", 385, 3288334336, id=0),
            Node("pool", 120, 40, dependencies=(0,), id=1),
            Node("grad", 0.5, 4, backward=True, dependencies=(0, 1), id=2),
        ),
        name="VGG",
    )


def test_node_link_with_names_and_an_order(tmp_path: Path) -> None:
    document = {
        "graph": {"order": ["0", "30", "2"]},
        "nodes": [
            {"name": 0, "duration": 5, "out_cost": 6},
            {"name": 2, "duration": 7, "out_cost": 8},
            {"name": 30, "duration": 9, "out_cost": 1},
        ],
        "edges": [{"0": 0, "1": 2}, {"0": 30, "1": 2}],
    }
    assert ComputationGraph.load(_file(tmp_path, document)) == ComputationGraph(
        (
            Node("0", 5, 6, id=0),
            Node("30", 9, 1, id=30),
            Node("2", 7, 8, dependencies=(0, 1), id=2),
        ),
        name="net",
    )


@pytest.mark.parametrize(
    ("edges", "ids", "given_order", "order"),
    [
        ([(0, 1)], [2, 1, 0], None, [0, 1, 2]),  # the ids are an order
        ([(2, 0), (0, 1)], [0, 1, 2], None, [2, 0, 1]),  # they are not
        ([(3, 1)], [0, 1, 2, 3], None, [0, 2, 3, 1]),  # sorted: the earliest that is ready
        ([("b", "a")], ["c", "a", "b"], None, ["c", "b", "a"]),
        ([("a", "b")], ["a", "c", "b"], None, ["a", "c", "b"]),  # as in the file
        ([(0, 1)], [0, 1, 2], [2, 0, 1], [2, 0, 1]),  # given
        ([(0, 1)], [0, 1, 2], ["2", "0", "1"], [2, 0, 1]),
        ([("1", 1)], [1, "1"], ["1", 1], ["1", 1]),  # a number and its text are two nodes
    ],
)
def test_input_order(
    tmp_path: Path,
    edges: list[Any],
    ids: list[Any],
    given_order: list[Any] | None,
    order: list[Any],
) -> None:
    attributes = {} if given_order is None else {"order": given_order}
    graph = ComputationGraph.load(_file(tmp_path, _link(edges, ids, graph=attributes)))
    assert [node.id for node in graph.nodes] == order
    read = {(graph.nodes[u].id, graph.nodes[v].id) for u, v in graph.edges}
    assert read == set(edges)


A = {"name": "a", "cost": 1, "memory": 1}
NODE = {"id": 0, "cost_cpu": 1, "cost_ram": 1}


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("", ("file-not-json", "line 1, column 1")),
        ('{"nodes": [{"id": 0, "cost', ("file-not-json", "line 1, column 2", "cut short")),
        ('{"nodes":\n[1,,2]}', ("file-not-json", "line 2, column 4")),
        ("[" * 10**5, ("file-unreadable",)),
        ('{"nodes": [' + "1" * 5000 + "]}", ("file-unreadable",)),
        ([1, 2], ("not-a-graph",)),
        ({"nodes": 7}, ("not-a-graph",)),
        ({"nodes": []}, ("graph-empty",)),
        (_own(A, version=2), ("format-version-unknown", 2, 1)),
        (_own(A, fixed_bytes=-1), ("field-invalid", "fixed_bytes", -1)),
        (_own(A, "b"), ("field-invalid", "nodes[1]", "'b'")),
        (_own(A | {"colour": 1}), ("field-unknown", "nodes[0]", "'colour'")),
        (_own({"name": "a", "memory": 1}), ("field-missing", "nodes[0]", "'cost'")),
        (_own(A | {"cost": -1}), ("field-invalid", "nodes[0].cost", -1)),
        (_own(A | {"cost": float("nan")}), ("field-invalid", "nodes[0].cost", "nan")),
        (_own(A | {"cost": float("inf")}), ("field-invalid", "nodes[0].cost", "inf")),
        (_own(A | {"cost": 10**400}), ("field-invalid", "nodes[0].cost", 1000)),
        (_own(A | {"cost": "1"}), ("field-invalid", "nodes[0].cost", "'1'")),
        (_own(A | {"memory": True}), ("field-invalid", "nodes[0].memory", True)),
        (_own(A | {"memory": 1.5}), ("field-invalid", "nodes[0].memory", 1.5)),
        (_own(A | {"memory": 2**63}), ("bytes-too-many", "nodes[0].memory", 2**63)),
        (_own(A | {"backward": "no"}), ("field-invalid", "nodes[0].backward", "'no'")),
        (_own(A | {"id": [1]}), ("node-id-invalid", "nodes[0]", [1])),
        (_own(A | {"id": True}), ("node-id-invalid", "nodes[0]", True)),
        (_own(A | {"operations": "Add"}), ("field-invalid", "nodes[0].operations", "'Add'")),
        (_own(A | {"dependencies": 0}), ("field-invalid", "nodes[0].dependencies", 0)),
        (_own(A, A | {"dependencies": [2]}), ("node-unknown", "nodes[1].dependencies", 2)),
        (
            _own(A, A | {"dependencies": [1]}),
            ("reference-out-of-order", "'a' (number 1)", "dependencies"),
        ),
        ({"nodes": [NODE]}, ("not-a-graph", "'links'", "'edges'")),
        ({"nodes": [NODE, NODE], "links": []}, ("node-id-twice", "nodes[1]", 0)),
        ({"nodes": [{"cost_ram": 1}], "links": []}, ("node-id-invalid", "nodes[0]")),
        (
            {"nodes": [{"id": 0, "cost_ram": 1}], "links": []},
            ("field-missing", "node 0", "'cost_cpu'"),
        ),
        (
            {"nodes": [{"id": 0}], "links": []},
            ("field-missing", "node 0", "'cost'"),
        ),
        (
            {"nodes": [NODE | {"cost_cpu": -2}], "links": []},
            ("field-invalid", "node 0.cost_cpu", -2),
        ),
        (
            {"nodes": [NODE | {"cost_ram": float("nan")}], "links": []},
            ("field-invalid", "node 0.cost_ram", "nan"),
        ),
        ({"nodes": [NODE | {"id": True}], "links": []}, ("node-id-invalid", "nodes[0]")),
        # A text is true, whatever it says.
        (
            {"nodes": [NODE | {"backward": "false"}], "links": []},
            ("field-invalid", "node 0.backward", "'false'"),
        ),
        (
            {"nodes": [NODE | {"recomputable": None}], "links": []},
            ("field-invalid", "node 0.recomputable", None),
        ),
        ({"nodes": [NODE | {"after": 0}], "links": []}, ("field-invalid", "node 0.after", 0)),
        (
            {"nodes": [NODE | {"expired_by": "0"}], "links": []},
            ("field-invalid", "node 0.expired_by", "'0'"),
        ),
        ({"nodes": [NODE | {"after": [[]]}], "links": []}, ("node-unknown", "node 0.after", [])),
        (
            {"nodes": [NODE | {"operations": None}], "links": []},
            ("field-invalid", "node 0.operations", None),
        ),
        ({"nodes": [NODE], "links": [7]}, ("field-invalid", "links[0]", 7)),
        ({"nodes": [NODE], "edges": [[0, 5]]}, ("node-unknown", "edges[0]", 5)),
        ({"nodes": [NODE], "links": [[[], 0]]}, ("node-unknown", "links[0]", [])),
        (_link([(0, 1), (1, 2), (2, 1)], [0, 1, 2]), ("graph-cyclic", "1 → 2 → 1")),
        (_link([("a", "a")], ["a"]), ("graph-cyclic", "'a' → 'a'")),
        (_link([(0, 1)], [0, 1], graph={"order": [1, 0]}), ("node-order-impossible", "1 before 0")),
        (_link([], [0, 1], graph={"order": [0]}), ("node-order-incomplete",)),
        (_link([], [1, "1"], graph={"order": [1, 1]}), ("node-order-incomplete",)),
        (_link([], [0, 1], graph={"order": [0, []]}), ("node-order-incomplete",)),
        (
            _link([], [0, 1], graph={"order": [0, 1, 1]}),
            ("node-order-incomplete",),
        ),
    ],
)
def test_a_broken_file_is_refused_with_file_and_place(
    tmp_path: Path, document: Any, told: tuple[str, ...]
) -> None:
    path = _file(tmp_path, document)
    with raises(GraphError, *told) as caught:
        ComputationGraph.load(path)
    assert str(caught.value).count(str(path)) == 1


def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    EVERY_FIELD.save(path)
    text = path.read_text().rstrip()
    for end in range(len(text)):
        path.write_text(text[:end])
        with raises(GraphError, "file-not-json", "line ", "column "):
            ComputationGraph.load(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with raises(GraphError, "file-unreadable", "none.json"):
        ComputationGraph.load(tmp_path / "none.json")


def test_the_file_is_named_even_where_it_is_called_like_a_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _file(tmp_path, _link([], [0], graph={"order": []}), "graph")
    with raises(GraphError, "node-order-incomplete", "graph: graph.order"):
        ComputationGraph.load("graph")
