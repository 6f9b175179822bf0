"""Computation graphs to and from networkx, whose nodes have the attributes of node-link files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import networkx as nx

from solvers.errors import GraphError
from solvers.graph.node import Node
from solvers.graph.node_link import from_node_link

_APART = ("dependencies", "id")
_RELATIONS = ("after", "expired_by")


def to_networkx(nodes: Sequence[Node], **attributes: Any) -> nx.DiGraph[Any]:
    """A directed graph with an edge from every node to each that reads it.

    Args:
        nodes: every node after all that it depends on. Their ids are the keys, or their numbers
            where not all have an id of their own.
        attributes: of the graph; `order`, the keys in the order of the nodes, is added.
    """
    ids = [node.id for node in nodes]
    keys = ids if None not in ids and len(set(ids)) == len(ids) else list(range(len(nodes)))
    graph: nx.DiGraph[Any] = nx.DiGraph(**attributes, order=keys)
    for key, node in zip(keys, nodes, strict=True):
        values = {each.name: getattr(node, each.name) for each in fields(node)}
        relations = {name: [keys[other] for other in values[name]] for name in _RELATIONS}
        given = {name: value for name, value in values.items() if name not in _APART}
        graph.add_node(key, **{**given, **relations})
        graph.add_edges_from((keys[read], key) for read in node.dependencies)
    return graph


def from_networkx(graph: nx.Graph[Any]) -> dict[str, Any]:
    """What `ComputationGraph` needs to know, from a directed graph of networkx.

    Raises:
        GraphError: it is not directed, has a cycle, or a node without cost and bytes.
    """
    if not graph.is_directed():
        raise GraphError(
            "graph-undirected",
            "an undirected graph: edges have to go from a value to what reads it",
        )
    for key in graph:
        if not isinstance(key, int | str):
            raise GraphError(
                "node-id-invalid",
                f"node {key!r}: a number or a text is expected; see networkx.relabel_nodes",
            )
    if not len(graph):
        raise GraphError("graph-empty", "the graph has no nodes")
    document = {
        "nodes": [{**values, "id": key} for key, values in graph.nodes(data=True)],
        "links": [[source, target] for source, target in graph.edges()],
        "graph": graph.graph,
    }
    return from_node_link(document, "graph")
