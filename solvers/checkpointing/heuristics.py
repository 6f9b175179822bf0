"""The heuristics of Table 1 (Jain et al., 2020): which values to keep as checkpoints.

Chen's two rules (Chen et al., 2016) are used over three sets of candidates: the layers of a
chain, the articulation points (AP) of the forward graph, and all its nodes in topological order
(linearized). On a graph without backward marks every node counts as forward.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from functools import partial

import numpy as np

from solvers.checkpointing.articulation import articulation_points, layers_of_chain
from solvers.checkpointing.cheapest import Matrices, cheapest
from solvers.checkpointing.checkpoints import checkpoint_matrices, forward_nodes, retain_gradients
from solvers.errors import SolverError
from solvers.graph import ComputationGraph
from solvers.graph.matrices import least_recomputation, matrix_peak
from solvers.problem import Problem, Solution

Candidates = Callable[[ComputationGraph], list[int]]


def solve_checkpoint_all(problem: Problem) -> Solution:
    """Keep every forward value and recompute nothing."""
    graph = problem.graph
    return cheapest(problem, "checkpoint_all", [checkpoint_matrices(graph, forward_nodes(graph))])


def solve_checkpoint_last(problem: Problem) -> Solution:
    """Keep only the last value, and gradients; recompute the rest from the input each time."""
    return cheapest(problem, "checkpoint_last", [last_matrices(problem.graph)])


def last_matrices(graph: ComputationGraph) -> Matrices:
    """(R, S) of keeping only the value just computed, and every gradient while it is needed."""
    S = np.eye(len(graph), k=-1, dtype=np.bool_)
    retain_gradients(graph, S)
    return least_recomputation(graph, S)


def every_sqrt(candidates: list[int]) -> list[int]:
    """Every ⌊√L⌋-th of L candidates.

    Example:
        >>> every_sqrt([10, 11, 12, 13, 14])
        [11, 13]
    """
    step = max(1, math.isqrt(len(candidates)))
    return candidates[step - 1 :: step]


def every_segment(
    graph: ComputationGraph, candidates: Collection[int], segment_bytes: float
) -> list[int]:
    """The candidates at which the memory since the last checkpoint exceeds `segment_bytes`."""
    checkpoints = []
    memory = 0
    for number in forward_nodes(graph):
        memory += graph.nodes[number].memory
        if number in candidates and memory > segment_bytes:
            checkpoints.append(number)
            memory = 0
    return checkpoints


def greedy_sweep(
    graph: ComputationGraph, candidates: list[int], coarse_first: bool = False
) -> Iterator[tuple[list[int], Matrices]]:
    """The different checkpoint sets of the greedy rule, b = peak(√n)·(1+x), x from −1 to 2.

    Ascending; with `coarse_first`, such that also the first few are of the whole range.
    """
    sqrt_peak = matrix_peak(graph, *checkpoint_matrices(graph, every_sqrt(candidates)))
    members = set(candidates)
    seen: set[tuple[int, ...]] = set()
    for percent in _spread(301) if coarse_first else range(301):
        segment_bytes = (sqrt_peak - graph.fixed_bytes) * percent / 100
        checkpoints = every_segment(graph, members, segment_bytes)
        if tuple(checkpoints) not in seen:
            seen.add(tuple(checkpoints))
            yield checkpoints, checkpoint_matrices(graph, checkpoints)


def _spread(count: int) -> list[int]:
    """The numbers below `count`, each far from those before it: sorted by their bits reversed."""
    bits = count.bit_length()
    return sorted(range(count), key=lambda number: f"{number:0{bits}b}"[::-1])


def _solve_sqrt(name: str, candidates: Candidates, problem: Problem) -> Solution:
    """Every ⌊√L⌋-th of L candidates is a checkpoint."""
    checkpoints = every_sqrt(candidates(problem.graph))
    return cheapest(problem, name, [checkpoint_matrices(problem.graph, checkpoints)])


def _solve_greedy(name: str, candidates: Candidates, problem: Problem) -> Solution:
    """A candidate is a checkpoint when more than b bytes follow the last one; b swept."""
    sweep = greedy_sweep(problem.graph, candidates(problem.graph))
    return cheapest(problem, name, (matrices for _, matrices in sweep))


def _layers(graph: ComputationGraph) -> list[int]:
    return layers_of_chain(graph, "Chen's rule")


def _articulation_points(graph: ComputationGraph) -> list[int]:
    points = articulation_points(graph)
    if not points:
        raise SolverError(
            "graph-without-articulation-points",
            f"{graph.name}: the forward graph has no articulation points, so there is nowhere to "
            "cut it; use linearized_sqrt or linearized_greedy",
        )
    return points


solve_chen_sqrt = partial(_solve_sqrt, "chen_sqrt", _layers)
solve_chen_greedy = partial(_solve_greedy, "chen_greedy", _layers)
solve_ap_sqrt = partial(_solve_sqrt, "ap_sqrt", _articulation_points)
solve_ap_greedy = partial(_solve_greedy, "ap_greedy", _articulation_points)
solve_linearized_sqrt = partial(_solve_sqrt, "linearized_sqrt", forward_nodes)
solve_linearized_greedy = partial(_solve_greedy, "linearized_greedy", forward_nodes)
