"""Which nodes belong to the backward pass, the update included."""

from __future__ import annotations

from solvers import ComputationGraph


def behind_gradients(graph: ComputationGraph) -> tuple[bool, ...]:
    """For every node, whether it is a gradient or waits for one.

    Example:
        >>> from solvers import ComputationGraph, Node
        >>> forward, gradient = Node("a", 1.0, 4), Node("b", 1.0, 4, backward=True)
        >>> update = Node("c", 1.0, 4, after=(1,))
        >>> behind_gradients(ComputationGraph((forward, gradient, update)))
        (False, True, True)
    """
    follows: list[bool] = []
    for node in graph.nodes:
        before = (*node.dependencies, *node.after)
        follows.append(node.backward or any(follows[other] for other in before))
    return tuple(follows)
