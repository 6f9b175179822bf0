"""From a set of checkpoints to a schedule: the rule behind all the heuristics of Table 1.

The checkpoints cut the forward pass into segments. A checkpoint is retained to the end of the
step, a gradient until its last reader; a segment is retained while the forward pass goes
through it, and again, recomputed once, while the backward pass does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from solvers.graph import BoolMatrix, ComputationGraph
from solvers.graph.matrices import least_recomputation


def forward_nodes(graph: ComputationGraph) -> list[int]:
    """The nodes that may become checkpoints; on a graph without backward marks, every node."""
    return [number for number, node in enumerate(graph.nodes) if not node.backward]


def checkpoint_matrices(
    graph: ComputationGraph, checkpoints: Collection[int]
) -> tuple[BoolMatrix, BoolMatrix]:
    """(R, S), each of shape (n, n), of keeping `checkpoints` as the paper's authors build them."""
    n = len(graph)
    S = np.zeros((n, n), dtype=np.bool_)
    for number in range(n):
        S[number, list(graph.nodes[number].dependencies)] = True
    retain_gradients(graph, S)
    for i in checkpoints:
        S[i + 1 :, i] = True
    for values, stages in _segments(graph, sorted(checkpoints)):
        for first, last in stages:
            S[first : last + 1, values] = True
            for number in range(first, last):
                if graph.nodes[number].backward:
                    S[number + 1 : last + 1, number] = True
    return least_recomputation(graph, S)


def retain_gradients(graph: ComputationGraph, S: BoolMatrix) -> None:
    """Retain every gradient until its last reader: the heuristics never recompute one."""
    for number, node in enumerate(graph.nodes):
        if node.backward and graph.users[number]:
            S[number + 1 : graph.users[number][-1] + 1, number] = True


def first_gradients(graph: ComputationGraph) -> dict[int, int]:
    """For every forward node with one, the first backward node after the loss that reads it."""
    loss = next((number for number, node in enumerate(graph.nodes) if node.backward), len(graph))
    readers = {i: [j for j in graph.users[i] if j >= loss] for i in forward_nodes(graph)}
    return {i: min((j for j in js if j > loss), default=loss) for i, js in readers.items() if js}


def _segments(
    graph: ComputationGraph, checkpoints: list[int]
) -> Iterable[tuple[list[int], list[tuple[int, int]]]]:
    """For every segment its forward nodes, and the ranges of stages that retain them."""
    forward = forward_nodes(graph)
    gradients = first_gradients(graph)
    end_of_forward = forward[-1] + 1 if forward else 0
    for start, end in zip([0, *checkpoints], [*checkpoints, end_of_forward], strict=True):
        values = [i for i in forward if start <= i < end]
        backward = [gradients[i] for i in values if i in gradients]
        if not backward:
            yield values, [(start, end)]
        elif end == end_of_forward:  # the backward pass begins in the last segment
            yield values, [(start, max(backward))]
        else:
            yield values, [(start, end), (min(backward), max(backward))]
