"""Graphs as JSON: this project's own format, and the two node-link dialects in the wild.

Own format: an object with `format` = "checkmate_tf graph", `version`, `name`, `fixed_bytes`,
`cost_unit` and `nodes`, a list of objects with the fields of `solvers.Node` (those at their
default are left out).
Node-link, as networkx writes it: `nodes` with `cost_cpu`, `cost_ram`, `backward`, `id` and
`links` or `edges` with `source`, `target`; or `duration`, `out_cost`, `name` and edges
{"0": u, "1": v}. The input order is `graph.order` where given, else the file's ids where they
are a topological order, else a deterministic topological sort.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import networkx as nx

from solvers.errors import CheckmateError, GraphError
from solvers.graph.files import read_json, write_whole
from solvers.graph.node import Node

FORMAT = "checkmate_tf graph"
VERSION = 1

Graph = TypeVar("Graph")

_NODE_FIELDS = {each.name: each for each in fields(Node)}
_REFERENCES = ("dependencies", "after", "expired_by")


def write_graph(path: str | Path, nodes: Sequence[Node], **attributes: Any) -> None:
    """Write a graph in this project's format, whole or not at all."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        **{name: attributes[name] for name in ("name", "fixed_bytes", "cost_unit")},
        "nodes": [_node_to_json(node) for node in nodes],
    }
    write_whole(path, json.dumps(document, indent=1) + "\n")


def read_graph(path: str | Path, make: Callable[..., Graph]) -> Graph:
    """Read a graph, whichever of the known formats it has.

    Args:
        make: called with `nodes`, `name` and what else the file says: `ComputationGraph`.

    Raises:
        GraphError: the file is cut short, has a cycle, a negative cost, one that is not a
            number, or refers to nodes that are not there; the message names file and place.
    """
    try:
        document = read_json(path)
    except CheckmateError as error:
        raise GraphError(str(error)) from error
    try:
        if not isinstance(document, dict) or not isinstance(document.get("nodes"), list):
            raise GraphError("not a graph: an object with a list 'nodes' is expected")
        if not document["nodes"]:
            raise GraphError("the graph has no nodes")
        if document.get("format") == FORMAT:
            return make(**_from_own_format(document))
        return make(**_from_node_link(document, Path(path).stem))
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from error


def _node_to_json(node: Node) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, each in _NODE_FIELDS.items()
        if (value := getattr(node, name)) != each.default
    }


def _from_own_format(document: dict[str, Any]) -> dict[str, Any]:
    if document.get("version") != VERSION:
        raise GraphError(
            f"version {document.get('version')!r} of the graph format; this release reads {VERSION}"
        )
    count = len(document["nodes"])
    nodes = tuple(_node_from_json(place, raw, count) for place, raw in enumerate(document["nodes"]))
    return {
        "nodes": nodes,
        "fixed_bytes": _bytes(document.get("fixed_bytes", 0), "fixed_bytes"),
        "name": str(document.get("name", "graph")),
        "cost_unit": str(document.get("cost_unit", "")),
    }


def _node_from_json(place: int, raw: Any, count: int) -> Node:
    where = f"nodes[{place}]"
    if not isinstance(raw, dict):
        raise GraphError(f"{where} is {raw!r}; an object is expected")
    unknown = set(raw) - set(_NODE_FIELDS)
    if unknown:
        raise GraphError(f"{where} has the unknown field {min(unknown)!r}")
    for name in ("name", "cost", "memory"):
        if name not in raw:
            raise GraphError(f"{where} has no {name!r}")
    values = dict(raw)
    values["name"] = str(raw["name"])
    values["cost"] = _number(raw["cost"], f"{where}.cost")
    for name in ("memory", "workspace"):
        if name in raw:
            values[name] = _bytes(raw[name], f"{where}.{name}")
    for name in _REFERENCES:
        if name in raw:
            values[name] = _references(raw[name], f"{where}.{name}", count)
    for name in ("backward", "recomputable"):
        if not isinstance(raw.get(name, True), bool):
            raise GraphError(f"{where}.{name} is {raw[name]!r}; true or false is expected")
    if "operations" in raw:
        if not isinstance(raw["operations"], list):
            raise GraphError(f"{where}.operations is {raw['operations']!r}; a list is expected")
        values["operations"] = tuple(str(each) for each in raw["operations"])
    return Node(**values)


def _references(value: Any, where: str, count: int) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise GraphError(f"{where} is {value!r}; a list of node numbers is expected")
    for each in value:
        if isinstance(each, bool) or not isinstance(each, int) or not 0 <= each < count:
            raise GraphError(f"{where} names node {each!r}, which is not there")
    return tuple(value)


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise GraphError(f"{where} is {value!r}; a number is expected")
    # A comparison with NaN is false; and, unlike isfinite, it takes an int of any size.
    if not 0 <= value <= sys.float_info.max:
        raise GraphError(f"{where} is {value}; it must be zero or more, and finite")
    return value


def _bytes(value: Any, where: str) -> int:
    size = _number(value, where)
    if size != int(size):
        raise GraphError(f"{where} is {value}; a whole number of bytes is expected")
    if size >= 2**63:
        raise GraphError(f"{where} is {value}; that is more than any memory")
    return int(size)


def _from_node_link(document: dict[str, Any], default_name: str) -> dict[str, Any]:
    dependencies: dict[Any, set[Any]] = {}
    raw_nodes: dict[Any, dict[str, Any]] = {}
    for place, raw in enumerate(document["nodes"]):
        key = raw.get("id", raw.get("name")) if isinstance(raw, dict) else None
        if not isinstance(key, int | str):
            raise GraphError(f"nodes[{place}] has no 'id' or 'name' that is a number or a text")
        if key in raw_nodes:
            raise GraphError(f"nodes[{place}] repeats the id {key!r}")
        raw_nodes[key] = raw
        dependencies[key] = set()
    field, links = _links(document)
    for place, edge in enumerate(links):
        source, target = _ends(edge, f"{field}[{place}]")
        for end in (source, target):
            if not isinstance(end, int | str) or end not in raw_nodes:
                raise GraphError(f"{field}[{place}] refers to node {end!r}, which is not there")
        dependencies[target].add(source)
    attributes = document.get("graph")
    attributes = attributes if isinstance(attributes, dict) else {}
    order = _input_order(dependencies, attributes.get("order"))
    rank = {key: number for number, key in enumerate(order)}
    nodes = tuple(
        _node_from_link(
            key, raw_nodes[key], tuple(sorted(rank[each] for each in dependencies[key]))
        )
        for key in order
    )
    return {"nodes": nodes, "name": str(attributes.get("name") or default_name)}


def _links(document: dict[str, Any]) -> tuple[str, list[Any]]:
    for field in ("links", "edges"):
        links = document.get(field)
        if isinstance(links, list):
            return field, links
    raise GraphError("a list of edges is expected under 'links' or 'edges'")


def _ends(edge: Any, where: str) -> tuple[Any, Any]:
    if isinstance(edge, dict):
        for first, second in (("source", "target"), ("0", "1")):
            if first in edge and second in edge:
                return edge[first], edge[second]
    if isinstance(edge, list) and len(edge) >= 2:
        return edge[0], edge[1]
    raise GraphError(f"{where} is {edge!r}; an object with 'source' and 'target' is expected")


def _input_order(dependencies: dict[Any, set[Any]], given: Any) -> list[Any]:
    if given is not None:
        if not isinstance(given, list) or sorted(map(str, given)) != sorted(map(str, dependencies)):
            raise GraphError("graph.order does not name every node once")
        by_text = {str(key): key for key in dependencies}
        order = [by_text[str(each)] for each in given]
        _check_order(order, dependencies)
        return order
    in_file = list(dependencies)
    if all(isinstance(key, int) for key in in_file):
        in_file.sort()
    if _first_backward_edge(in_file, dependencies) is None:
        return in_file
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_nodes_from(in_file)
    graph.add_edges_from((source, each) for each in in_file for source in dependencies[each])
    position = {key: number for number, key in enumerate(in_file)}
    try:
        return list(nx.lexicographical_topological_sort(graph, key=position.__getitem__))
    except nx.NetworkXUnfeasible:
        edges = nx.find_cycle(graph)
        cycle = " → ".join(repr(each) for each in (edges[0][0], *(end for _, end in edges)))
        raise GraphError(f"the graph has a cycle: {cycle}") from None


def _check_order(order: list[Any], dependencies: dict[Any, set[Any]]) -> None:
    edge = _first_backward_edge(order, dependencies)
    if edge is not None:
        raise GraphError(f"graph.order puts {edge[1]!r} before {edge[0]!r}, which it depends on")


def _first_backward_edge(
    order: list[Any], dependencies: dict[Any, set[Any]]
) -> tuple[Any, Any] | None:
    seen: set[Any] = set()
    for key in order:
        for source in dependencies[key]:
            if source not in seen:
                return source, key
        seen.add(key)
    return None


def _node_from_link(key: Any, raw: dict[str, Any], dependencies: tuple[int, ...]) -> Node:
    where = f"node {key!r}"
    cost_field, memory_field = (
        ("cost_cpu", "cost_ram") if "cost_ram" in raw else ("duration", "out_cost")
    )
    for name in (cost_field, memory_field):
        if name not in raw:
            raise GraphError(f"{where} has no {name!r}")
    return Node(
        name=str(raw.get("name", key)),
        cost=float(_number(raw[cost_field], f"{where}.{cost_field}")),
        memory=_bytes(raw[memory_field], f"{where}.{memory_field}"),
        backward=bool(raw.get("backward", False)),
        dependencies=dependencies,
        id=key,
    )
