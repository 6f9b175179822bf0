"""Graphs in the node-link form of networkx, in three dialects.

    nodes: `id`, `cost`, `memory` and what else `Node` has, by the same names
    nodes: `id`, `cost_cpu`, `cost_ram`, `backward`      (the authors of Checkmate)
    nodes: `name`, `duration`, `out_cost`                (random layered graphs)

Edges are under `links` or `edges`: objects with `source` and `target` (or "0" and "1"), or pairs.
The input order is `graph.order` where given, else the file's ids where they are in a topological
order, else the topological order closest to the file's. `graph` may also hold `name`,
`fixed_bytes` and `cost_unit`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import networkx as nx

from solvers.errors import GraphError
from solvers.graph.json_fields import node, number, whole_bytes
from solvers.graph.node import Node
from solvers.graph.topological import topological_order

DIALECTS = (("cost", "memory"), ("cost_cpu", "cost_ram"), ("duration", "out_cost"))
"""The attributes of a node that hold its cost and the bytes of its outputs."""

Key = int | str
Dependencies = dict[Key, set[Key]]


def from_node_link(document: dict[str, Any], default_name: str) -> dict[str, Any]:
    """What `ComputationGraph` needs to know, from a node-link object with a list `nodes`.

    Raises:
        GraphError: the object is not a graph; the message names the place.
    """
    raw_nodes = _raw_nodes(document["nodes"])
    dependencies = _dependencies(document, raw_nodes)
    attributes = document.get("graph")
    attributes = attributes if isinstance(attributes, dict) else {}
    order = _input_order(dependencies, attributes.get("order"))
    rank = {key: place for place, key in enumerate(order)}
    return {
        "nodes": tuple(_node(key, raw_nodes[key], dependencies[key], rank) for key in order),
        "name": str(attributes.get("name") or default_name),
        "fixed_bytes": whole_bytes(attributes.get("fixed_bytes", 0), "graph.fixed_bytes"),
        "cost_unit": str(attributes.get("cost_unit", "")),
    }


def _raw_nodes(listed: list[Any]) -> dict[Key, dict[str, Any]]:
    raw_nodes: dict[Key, dict[str, Any]] = {}
    for place, raw in enumerate(listed):
        key = raw.get("id", raw.get("name")) if isinstance(raw, dict) else None
        if isinstance(key, bool) or not isinstance(key, int | str):
            raise GraphError(
                "node-id-invalid",
                f"nodes[{place}] has no 'id' or 'name' that is a number or a text",
            )
        if key in raw_nodes:
            raise GraphError("node-id-twice", f"nodes[{place}] repeats the id {key!r}")
        raw_nodes[key] = raw
    return raw_nodes


def _dependencies(document: dict[str, Any], raw_nodes: Collection[Key]) -> Dependencies:
    dependencies: Dependencies = {key: set() for key in raw_nodes}
    field, links = _links(document)
    for place, edge in enumerate(links):
        source, target = _ends(edge, f"{field}[{place}]")
        for end in (source, target):
            if not isinstance(end, int | str) or end not in dependencies:
                raise GraphError(
                    "node-unknown", f"{field}[{place}] refers to node {end!r}, which is not there"
                )
        dependencies[target].add(source)
    return dependencies


def _links(document: dict[str, Any]) -> tuple[str, list[Any]]:
    for field in ("links", "edges"):
        links = document.get(field)
        if isinstance(links, list):
            return field, links
    raise GraphError("not-a-graph", "a list of edges is expected under 'links' or 'edges'")


def _ends(edge: Any, where: str) -> tuple[Any, Any]:
    if isinstance(edge, dict):
        for first, second in (("source", "target"), ("0", "1")):
            if first in edge and second in edge:
                return edge[first], edge[second]
    if isinstance(edge, list) and len(edge) >= 2:
        return edge[0], edge[1]
    raise GraphError(
        "field-invalid", f"{where} is {edge!r}; an object with 'source' and 'target' is expected"
    )


def _input_order(dependencies: Dependencies, given: Any) -> list[Key]:
    if given is not None:
        return _given_order(dependencies, given)
    in_file = list(dependencies)
    if all(isinstance(key, int) for key in in_file):
        in_file.sort()
    if _first_backward_edge(in_file, dependencies) is None:
        return in_file
    rank = {key: place for place, key in enumerate(in_file)}
    order = topological_order([{rank[each] for each in dependencies[key]} for key in in_file])
    if len(order) < len(in_file):
        raise GraphError("graph-cyclic", f"the graph has a cycle: {_cycle(in_file, dependencies)}")
    return [in_file[place] for place in order]


def _given_order(dependencies: Dependencies, given: Any) -> list[Key]:
    # A number may be named by its text, as by a key of a JSON object; but 5 and "5" can be two.
    by_text = {str(key): key for key in dependencies}
    order: list[Any] = [
        each if type(each) in (int, str) and each in dependencies else by_text.get(str(each))
        for each in (given if isinstance(given, list | tuple) else ())
    ]
    if len(order) != len(dependencies) or set(order) != set(dependencies):
        raise GraphError("node-order-incomplete", "graph.order does not name every node once")
    edge = _first_backward_edge(order, dependencies)
    if edge is not None:
        raise GraphError(
            "node-order-impossible",
            f"graph.order puts {edge[1]!r} before {edge[0]!r}, which it depends on",
        )
    return order


def _first_backward_edge(order: list[Key], dependencies: Dependencies) -> tuple[Key, Key] | None:
    seen: set[Key] = set()
    for key in order:
        for source in dependencies[key]:
            if source not in seen:
                return source, key
        seen.add(key)
    return None


def _cycle(keys: list[Key], dependencies: Dependencies) -> str:
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_nodes_from(keys)
    graph.add_edges_from((source, key) for key in keys for source in dependencies[key])
    edges = nx.find_cycle(graph)
    return " → ".join(repr(each) for each in (edges[0][0], *(end for _, end in edges)))


def _node(key: Key, raw: dict[str, Any], dependencies: set[Key], rank: dict[Key, int]) -> Node:
    where = f"node {key!r}"
    cost, memory = _cost_and_memory(raw, where)
    return node(
        raw,
        where,
        ("after", "expired_by"),
        rank,
        name=str(raw.get("name", key)),
        cost=float(number(raw[cost], f"{where}.{cost}")),
        memory=whole_bytes(raw[memory], f"{where}.{memory}"),
        dependencies=tuple(rank[each] for each in dependencies),
        id=key,
    )


def _cost_and_memory(raw: dict[str, Any], where: str) -> tuple[str, str]:
    """The names under which a node has its cost and its bytes."""
    for pair in DIALECTS:
        missing = [each for each in pair if each not in raw]
        if len(missing) == 1:
            raise GraphError("field-missing", f"{where} has no {missing[0]!r}")
        if not missing:
            return pair
    accepted = ", or ".join(f"{cost!r} and {memory!r}" for cost, memory in DIALECTS)
    had = ", ".join(repr(each) for each in raw) or "nothing"
    raise GraphError(
        "field-missing", f"{where} has no cost and no bytes; give it {accepted} (it has {had})"
    )
