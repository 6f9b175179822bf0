"""From checkpoints to a schedule where each connected piece between them is recomputed once.

The rules of table 1 cut the forward pass in its order; here a cut may be in one branch only.
"""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx
import numpy as np

from solvers.checkpointing.cheapest import Matrices
from solvers.checkpointing.checkpoints import first_gradients
from solvers.graph import BoolMatrix, ComputationGraph
from solvers.graph.matrices import least_recomputation


def forward_graph(graph: ComputationGraph) -> nx.Graph[int]:
    """Who reads whom before the backward pass begins, in both directions.

    On a graph without backward marks, this is every node.
    """
    marks = (number for number, node in enumerate(graph.nodes) if node.backward)
    count = next(marks, len(graph))
    forward: nx.Graph[int] = nx.Graph()
    forward.add_nodes_from(range(count))
    forward.add_edges_from((i, j) for i, j in graph.edges if j < count)
    return forward


def connected_pieces(forward: nx.Graph[int], checkpoints: Iterable[int]) -> list[list[int]]:
    """What the forward pass is made of without its checkpoints; each piece ascending."""
    inside = forward.subgraph(set(forward) - set(checkpoints))
    return [sorted(piece) for piece in nx.connected_components(inside)]


def piece_matrices(graph: ComputationGraph, checkpoints: Iterable[int]) -> Matrices:
    """(R, S), each of shape (n, n), of keeping `checkpoints` to the end of the step.

    A piece is computed again, as a whole, in the stage of the first gradient that reads of it, and
    each value of it retained until its last reader. The piece at the end of the forward pass is
    needed at once and is kept. Gradients, and what follows from them, are never recomputed.
    """
    forward = forward_graph(graph)
    kept = set(checkpoints)
    n = len(graph)
    last_user = [max(users, default=0) for users in graph.users]
    S = np.zeros((n, n), dtype=np.bool_)
    for i in range(n):
        if i in kept:
            S[i + 1 :, i] = True
        elif i in forward:
            _retain(S, i, i, max((j for j in graph.users[i] if j in forward), default=i))
        else:
            _retain(S, i, i, last_user[i])
    pieces = connected_pieces(forward, kept)
    at_the_end = max((piece[-1] for piece in pieces), default=0)
    gradients = first_gradients(graph)
    for piece in pieces:
        needed = min((gradients[i] for i in piece if i in gradients), default=n)
        is_last = piece[-1] == at_the_end
        for i in piece:
            _retain(S, i, i if is_last else needed, last_user[i])
    return least_recomputation(graph, S)


def _retain(S: BoolMatrix, node: int, computed: int, read: int) -> None:
    """Retain a value from the stage that computes it into the one that reads it last."""
    S[computed + 1 : read + 1, node] = True
