"""Binomial checkpointing of chains: revolve (Griewank and Walther, 2000, Algorithm 799).

A chain of l steps is reversed with s checkpoints, of which the first holds the input. With
β(s, r) = C(s + r, s) and r the least number for which l ≤ β(s, r), the least number of forward
steps is t(l, s) = r·l − β(s + 1, r − 1); all steps count the same here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from solvers.checkpointing.articulation import layers_of_chain
from solvers.checkpointing.cheapest import Matrices, cheapest
from solvers.checkpointing.checkpoints import first_gradients, forward_nodes, retain_gradients
from solvers.graph import ComputationGraph
from solvers.graph.matrices import least_recomputation
from solvers.problem import Problem, Solution

_MOST_SWEPT = 64


def solve_griewank(problem: Problem) -> Solution:
    """Revolve with every number of slots (64 of them, on long chains); the cheapest that fits.

    Raises:
        SolverError: the forward graph is not a chain, for which alone the rule is defined.
    """
    graph = problem.graph
    layers_of_chain(graph, "binomial checkpointing")
    plans = (griewank_matrices(graph, slots) for slots in slot_counts(graph))
    return cheapest(problem, "griewank", plans)


def slot_counts(graph: ComputationGraph) -> list[int]:
    """The numbers of slots that are tried, ascending."""
    length = len(forward_nodes(graph))
    slots = np.geomspace(1, length + 1, _MOST_SWEPT).astype(np.int64) - 1
    return sorted({int(each) for each in slots})


def griewank_matrices(graph: ComputationGraph, slots: int) -> Matrices:
    """(R, S) of revolve on a chain with `slots` values kept at a time, besides the input."""
    n = len(graph)
    forward = forward_nodes(graph)
    S = np.zeros((n, n), dtype=np.bool_)
    retain_gradients(graph, S)
    S[range(1, n), range(n - 1)] = True  # each stage has what the one before ended with
    gradient = first_gradients(graph)
    last = forward[-1]  # its gradient comes at once
    S[last + 1 : gradient.get(last, last) + 1, last] = True
    # In the paper's terms state 0 is the input and state k + 1 the output of layer k.
    for middle, end in _splits(0, len(forward) + 1, slots + 1):
        layer = forward[middle - 1]
        # Kept from the sweep that ends with the last state before `end` to its own gradient.
        begins = gradient.get(forward[end - 2], n - 1) if end <= len(forward) else layer
        S[begins + 1 : gradient.get(layer, n - 1) + 1, layer] = True
    return least_recomputation(graph, S)


def _splits(start: int, end: int, checkpoints: int) -> Iterator[tuple[int, int]]:
    """Where revolve sets checkpoints in the states from `start` to before `end`: (middle, end)."""
    waiting = [(start, end, checkpoints)]  # not by recursion: chains are longer than it is deep
    while waiting:
        start, end, checkpoints = waiting.pop()
        while end - start > 1 and checkpoints > 1:
            middle = start + _advance(end - start, checkpoints)
            yield middle, end
            waiting.append((middle, end, checkpoints - 1))
            end = middle


def _advance(steps: int, checkpoints: int) -> int:
    """How far ahead the next checkpoint is set so that t(l, s) is reached.

    With m so many steps, t(l, s) = m + t(m, s) + t(l − m, s − 1) where β(s, r − 2) ≤ m ≤
    β(s, r − 1) and β(s − 1, r − 1) ≤ l − m ≤ β(s − 1, r).
    """
    r = next(r for r in itertools.count() if _beta(checkpoints, r) >= steps)
    least = max(_beta(checkpoints, r - 2), steps - _beta(checkpoints - 1, r), 1)
    return min(least, steps - 1)


def _beta(s: int, r: int) -> int:
    return math.comb(s + r, s) if r >= 0 else 0
