"""Graphs as JSON files: written in this project's own format, read in that or as node-link.

The own format is an object with `format` = "checkmate_tf graph", `version`, `name`,
`fixed_bytes`, `cost_unit` and `nodes`, a list of objects with the fields of `solvers.Node`. Fields
at their default are left out. For node-link see `solvers.graph.node_link`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from solvers.errors import CheckmateError, GraphError
from solvers.graph.files import read_json
from solvers.graph.json_fields import node, number, whole_bytes
from solvers.graph.node import Node
from solvers.graph.node_link import from_node_link

FORMAT = "checkmate_tf graph"
VERSION = 1

Graph = TypeVar("Graph")

_NODE_FIELDS = {each.name: each for each in fields(Node)}


def to_document(nodes: Sequence[Node], **attributes: Any) -> dict[str, Any]:
    """A graph in this project's format, as an object that JSON can hold."""
    return {
        "format": FORMAT,
        "version": VERSION,
        **{name: attributes[name] for name in ("name", "fixed_bytes", "cost_unit")},
        "nodes": [_node_to_json(each) for each in nodes],
    }


def from_document(document: Any, make: Callable[..., Graph], name: str) -> Graph:
    """As `read_graph`, of what has been read already; `name` is for a graph that has none."""
    if not isinstance(document, dict) or not isinstance(document.get("nodes"), list):
        raise GraphError("not-a-graph", "not a graph: an object with a list 'nodes' is expected")
    if not document["nodes"]:
        raise GraphError("graph-empty", "the graph has no nodes")
    if document.get("format") == FORMAT:
        return make(**_from_own_format(document))
    return make(**from_node_link(document, name))


def read_graph(path: str | Path, make: Callable[..., Graph]) -> Graph:
    """Read a graph in either format.

    Args:
        make: called with `nodes`, `name` and what else the file says: `ComputationGraph`.

    Raises:
        GraphError: the file is cut short, has a cycle, a negative cost, one that is not a
            number, or refers to nodes that are not there; the message names file and place.
    """
    try:
        document = read_json(path)
    except CheckmateError as error:
        raise GraphError(error.code, str(error)) from error
    try:
        return from_document(document, make, Path(path).stem)
    except GraphError as error:
        raise GraphError(error.code, f"{path}: {error}") from error


def _node_to_json(written: Node) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, each in _NODE_FIELDS.items()
        if (value := getattr(written, name)) != each.default
    }


def _from_own_format(document: dict[str, Any]) -> dict[str, Any]:
    if document.get("version") != VERSION:
        raise GraphError(
            "format-version-unknown",
            f"version {document.get('version')!r} of the graph format; this release reads "
            f"{VERSION}",
        )
    numbers = {number: number for number in range(len(document["nodes"]))}
    return {
        "nodes": tuple(
            _node_from_json(raw, f"nodes[{place}]", numbers)
            for place, raw in enumerate(document["nodes"])
        ),
        "fixed_bytes": whole_bytes(document.get("fixed_bytes", 0), "fixed_bytes"),
        "name": str(document.get("name", "graph")),
        "cost_unit": str(document.get("cost_unit", "")),
    }


def _node_from_json(raw: Any, where: str, numbers: dict[int, int]) -> Node:
    if not isinstance(raw, dict):
        raise GraphError("field-invalid", f"{where} is {raw!r}; an object is expected")
    unknown = set(raw) - set(_NODE_FIELDS)
    if unknown:
        raise GraphError("field-unknown", f"{where} has the unknown field {min(unknown)!r}")
    for name in ("name", "cost", "memory"):
        if name not in raw:
            raise GraphError("field-missing", f"{where} has no {name!r}")
    if isinstance(raw.get("id"), bool) or not isinstance(raw.get("id"), int | str | None):
        raise GraphError(
            "node-id-invalid", f"{where}.id is {raw['id']!r}; a number or a text is expected"
        )
    return node(
        raw,
        where,
        ("dependencies", "after", "expired_by"),
        numbers,
        name=str(raw["name"]),
        cost=number(raw["cost"], f"{where}.cost"),
        memory=whole_bytes(raw["memory"], f"{where}.memory"),
        id=raw.get("id"),
    )
