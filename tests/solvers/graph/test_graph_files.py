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
    ("document", "message"),
    [
        ("", "line 1, column 1: not JSON"),
        ('{"nodes": [{"id": 0, "cost', r"line 1, column \d+: not JSON.*cut short"),
        ('{"nodes":\n[1,,2]}', "line 2, column 4: not JSON"),
        ("[" * 10**5, "cannot be read: it is nested too deeply"),
        ('{"nodes": [' + "1" * 5000 + "]}", "cannot be read: a number in it has too many digits"),
        ([1, 2], "not a graph"),
        ({"nodes": 7}, "not a graph"),
        ({"nodes": []}, "the graph has no nodes"),
        (_own(A, version=2), "version 2 of the graph format; this release reads 1"),
        (_own(A, fixed_bytes=-1), "fixed_bytes is -1"),
        (_own(A, "b"), r"nodes\[1\] is 'b'; an object is expected"),
        (_own(A | {"colour": 1}), r"nodes\[0\] has the unknown field 'colour'"),
        (_own({"name": "a", "memory": 1}), r"nodes\[0\] has no 'cost'"),
        (_own(A | {"cost": -1}), r"nodes\[0\].cost is -1"),
        (_own(A | {"cost": float("nan")}), r"nodes\[0\].cost is nan"),
        (_own(A | {"cost": float("inf")}), r"nodes\[0\].cost is inf"),
        (_own(A | {"cost": 10**400}), r"nodes\[0\].cost is 1000"),
        (_own(A | {"cost": "1"}), r"nodes\[0\].cost is '1'; a number is expected"),
        (_own(A | {"memory": True}), r"nodes\[0\].memory is True; a number is expected"),
        (_own(A | {"memory": 1.5}), r"nodes\[0\].memory is 1.5; a whole number of bytes"),
        (_own(A | {"memory": 2**63}), r"nodes\[0\].memory is 9223372036854775808; that is more"),
        (_own(A | {"backward": "no"}), r"nodes\[0\].backward is 'no'; true or false"),
        (_own(A | {"id": [1]}), r"nodes\[0\].id is \[1\]; a number or a text"),
        (_own(A | {"id": True}), r"nodes\[0\].id is True; a number or a text"),
        (_own(A | {"operations": "Add"}), r"nodes\[0\].operations is 'Add'; a list"),
        (_own(A | {"dependencies": 0}), r"nodes\[0\].dependencies is 0; a list"),
        (_own(A, A | {"dependencies": [2]}), r"nodes\[1\].dependencies names node 2, which is not"),
        (
            _own(A, A | {"dependencies": [1]}),
            "'a' .number 1.: dependencies names node 1, .* earlier",
        ),
        ({"nodes": [NODE]}, "a list of edges is expected under 'links' or 'edges'"),
        ({"nodes": [NODE, NODE], "links": []}, r"nodes\[1\] repeats the id 0"),
        ({"nodes": [{"cost_ram": 1}], "links": []}, r"nodes\[0\] has no 'id' or 'name'"),
        ({"nodes": [{"id": 0, "cost_ram": 1}], "links": []}, "node 0 has no 'cost_cpu'"),
        (
            {"nodes": [{"id": 0}], "links": []},
            "node 0 has no cost and no bytes; give it .cost. and",
        ),
        ({"nodes": [NODE | {"cost_cpu": -2}], "links": []}, "node 0.cost_cpu is -2"),
        ({"nodes": [NODE | {"cost_ram": float("nan")}], "links": []}, "node 0.cost_ram is nan"),
        ({"nodes": [NODE | {"id": True}], "links": []}, r"nodes\[0\] has no 'id' or 'name'"),
        # A text is true, whatever it says.
        ({"nodes": [NODE | {"backward": "false"}], "links": []}, "node 0.backward is 'false'"),
        ({"nodes": [NODE | {"recomputable": None}], "links": []}, "node 0.recomputable is None"),
        ({"nodes": [NODE | {"after": 0}], "links": []}, "node 0.after is 0; a list"),
        ({"nodes": [NODE | {"expired_by": "0"}], "links": []}, "node 0.expired_by is '0'; a list"),
        ({"nodes": [NODE | {"after": [[]]}], "links": []}, r"node 0.after refers to node \[\]"),
        ({"nodes": [NODE | {"operations": None}], "links": []}, "node 0.operations is None"),
        ({"nodes": [NODE], "links": [7]}, r"links\[0\] is 7; an object with 'source'"),
        ({"nodes": [NODE], "edges": [[0, 5]]}, r"edges\[0\] refers to node 5, which is not there"),
        ({"nodes": [NODE], "links": [[[], 0]]}, r"links\[0\] refers to node \[\], which is not"),
        (_link([(0, 1), (1, 2), (2, 1)], [0, 1, 2]), "the graph has a cycle: 1 → 2 → 1"),
        (_link([("a", "a")], ["a"]), "the graph has a cycle: 'a' → 'a'"),
        (_link([(0, 1)], [0, 1], graph={"order": [1, 0]}), "puts 1 before 0, which it depends on"),
        (_link([], [0, 1], graph={"order": [0]}), "graph.order does not name every node once"),
        (_link([], [1, "1"], graph={"order": [1, 1]}), "does not name every node once"),
        (_link([], [0, 1], graph={"order": [0, []]}), "does not name every node once"),
        (
            _link([], [0, 1], graph={"order": [0, 1, 1]}),
            "graph.order does not name every node once",
        ),
    ],
)
def test_a_broken_file_is_refused_with_file_and_place(
    tmp_path: Path, document: Any, message: str
) -> None:
    path = _file(tmp_path, document)
    with pytest.raises(GraphError, match=message) as caught:
        ComputationGraph.load(path)
    assert str(caught.value).count(str(path)) == 1


def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    EVERY_FIELD.save(path)
    text = path.read_text().rstrip()
    for end in range(len(text)):
        path.write_text(text[:end])
        with pytest.raises(GraphError, match=r"line \d+, column \d+: not JSON"):
            ComputationGraph.load(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match=r"none\.json: cannot be read: No such file"):
        ComputationGraph.load(tmp_path / "none.json")


def test_the_file_is_named_even_where_it_is_called_like_a_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _file(tmp_path, _link([], [0], graph={"order": []}), "graph")
    with pytest.raises(GraphError, match=r"^graph: graph\.order"):
        ComputationGraph.load("graph")
