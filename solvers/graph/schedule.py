"""A schedule: the order in which nodes are computed and recomputed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.errors import ScheduleError
from solvers.graph.computation_graph import ComputationGraph

BoolMatrix = NDArray[np.bool_]


@dataclass(frozen=True)
class Schedule:
    """Node numbers in execution order; when each value is freed follows from it.

    Example:
        >>> Schedule([0, 1, 0, 2]).steps
        (0, 1, 0, 2)
    """

    steps: tuple[int, ...]

    def __init__(self, steps: Iterable[int]) -> None:
        object.__setattr__(self, "steps", tuple(int(step) for step in steps))

    def __len__(self) -> int:
        return len(self.steps)

    @staticmethod
    def from_matrices(graph: ComputationGraph, R: BoolMatrix, S: BoolMatrix) -> Schedule:
        """Read the paper's (R, S), each of shape (n, n), row by row (Alg. 1).

        Args:
            R: R[t, i], node i is computed in stage t.
            S: S[t, i], node i is retained from stage t−1 into stage t.

        A recomputation that nobody reads is left out: it could only cost.
        """
        steps = np.nonzero(R)[1].tolist()
        if S[:1].any():
            raise ScheduleError(
                "retained-from-nowhere",
                f"stage 0 retains node {int(np.flatnonzero(S[0])[0])}, but nothing comes before it "
                "(equation 1d)",
            )
        kept_from_nowhere = S[1:] & ~(R[:-1] | S[:-1])
        if kept_from_nowhere.any():
            t, node = map(int, np.argwhere(kept_from_nowhere)[0])
            raise ScheduleError(
                "retained-from-nowhere",
                f"stage {t + 1} retains node {node}, which stage {t} neither computes nor retains "
                "(equation 1c)",
            )
        return Schedule(steps).without_useless(graph)

    def without_useless(self, graph: ComputationGraph) -> Schedule:
        """The same schedule without the recomputations that nobody reads."""
        steps = self.steps
        first: dict[int, int] = {}
        for position, node in enumerate(steps):
            first.setdefault(node, position)
        wanted: set[int] = set()
        kept: list[int] = []
        for position in range(len(steps) - 1, -1, -1):
            node = steps[position]
            is_first = first[node] == position
            if not is_first and node not in wanted:
                continue
            wanted.discard(node)
            wanted.update(graph.nodes[node].dependencies)
            kept.append(node)
        return Schedule(reversed(kept))

    def to_matrices(self, graph: ComputationGraph) -> tuple[BoolMatrix, BoolMatrix]:
        """(R, S) of the paper: stage t ends with the first computation of the t-th new node.

        Columns follow the order of first computations, so that R is lower triangular. S[t, i]
        is set while a later stage reads the value that is already there. A recomputation that
        nobody reads is left out: it may come after the last stage, which has no row for it.
        """
        n = len(graph)
        R = np.zeros((n, n), dtype=np.bool_)
        S = np.zeros((n, n), dtype=np.bool_)
        column: dict[int, int] = {}
        computed_in: dict[int, int] = {}
        for node in self.without_useless(graph).steps:
            stage = len(column)
            is_first = node not in column
            for read in graph.nodes[node].dependencies:
                S[computed_in[read] + 1 : stage + 1, column[read]] = True
            if is_first:
                column[node] = stage
            R[stage, column[node]] = True
            computed_in[node] = stage
        return R, S
