"""Cut vertices of the forward graph: where a general graph can be cut like a chain."""

from __future__ import annotations

import networkx as nx

from solvers.checkpointing.checkpoints import forward_nodes
from solvers.errors import SolverError
from solvers.graph import ComputationGraph


def articulation_points(graph: ComputationGraph) -> list[int]:
    """Forward nodes through which every path from the input to the output goes, ascending.

    These are the articulation points of the undirected forward graph with one node more for
    what comes before it and one for what comes after it, so that the ends of a chain count.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> articulation_points(unit_chain(3))
        [0, 1, 2]
    """
    forward = forward_nodes(graph)
    edges = [(i, j) for i, j in graph.edges if not graph.nodes[j].backward]
    before, after = -1, len(graph)
    undirected: nx.Graph[int] = nx.Graph(edges)
    undirected.add_edges_from((before, j) for j in set(forward) - {j for _, j in edges})
    undirected.add_edges_from((i, after) for i in set(forward) - {i for i, _ in edges})
    points = set(nx.articulation_points(undirected))
    return [i for i in forward if i in points]


def is_chain(graph: ComputationGraph) -> bool:
    """Whether there are forward nodes, in a single path, each reading only the one before."""
    forward = forward_nodes(graph)
    before = [(), *((i,) for i in forward)]
    return bool(forward) and all(
        graph.nodes[j].dependencies == read for j, read in zip(forward, before, strict=False)
    )


def layers_of_chain(graph: ComputationGraph, rule: str) -> list[int]:
    """The forward nodes of a chain, in their order, for a rule that is defined for these alone.

    Raises:
        SolverError: the forward graph is not a chain.
    """
    if not is_chain(graph):
        raise SolverError(
            "graph-not-a-chain",
            f"{graph.name}: the forward graph is not a chain, and {rule} is defined for chains "
            "only; use milp, cutting_planes, or an ap_… or linearized_… solver",
        )
    return forward_nodes(graph)
