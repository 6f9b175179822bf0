"""Brings a schedule under budget by dropping, where it peaks, what is not read there."""

from __future__ import annotations

import numpy as np

from solvers.graph import BoolMatrix, ComputationGraph, Schedule, simulate
from solvers.graph.matrices import least_recomputation


def repair(graph: ComputationGraph, schedule: Schedule, budget: int) -> Schedule | None:
    """A schedule within `budget` bytes near `schedule`, or None where dropping does not help.

    At the peak the largest retained value is dropped that its stage does not read, from its last
    use until its next; what must then be recomputed follows from `least_recomputation`.
    """
    for _ in range(2 * len(graph)):
        simulation = simulate(graph, schedule)
        if simulation.peak <= budget:
            return schedule
        R, S = schedule.to_matrices(graph)
        # A step is of the stage that so many nodes were computed before.
        stage = len(set(schedule.steps[: int(np.argmax(simulation.timeline))]))
        if not _drop_largest(graph, R, S, stage):
            return None
        schedule = Schedule.from_matrices(graph, *least_recomputation(graph, S))
    return None


def _drop_largest(graph: ComputationGraph, R: BoolMatrix, S: BoolMatrix, stage: int) -> bool:
    """Clear S over the gap around `stage` for the largest value unused in it, if there is one."""
    uses = R.copy()  # where a value is computed or read
    for t in range(len(graph)):
        for k in np.flatnonzero(R[t]):
            uses[t, list(graph.nodes[int(k)].dependencies)] = True
    idle = [int(i) for i in np.flatnonzero(S[stage] & ~uses[stage]) if graph.nodes[i].recomputable]
    if not idle:
        return False
    largest = max(idle, key=lambda i: (graph.nodes[i].memory, -graph.nodes[i].cost))
    stages = np.flatnonzero(uses[:, largest])
    last, following = stages[stages < stage][-1], stages[stages > stage][0]
    S[last + 1 : following + 1, largest] = False
    return True
