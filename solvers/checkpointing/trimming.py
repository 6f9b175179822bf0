"""Drop recomputations that a schedule can do without.

Rules recompute whole segments. Where memory allows, a value may as well be retained from one
computation to the next; every recomputation is tried once a pass, dear ones first.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from solvers.errors import ScheduleError
from solvers.graph import ComputationGraph, Schedule, simulate


def trimmed(graph: ComputationGraph, schedule: Schedule, budget: int, deadline: float) -> Schedule:
    """A schedule under `budget` with some of the recomputations of `schedule`, which is under it.

    Args:
        graph: what is computed.
        schedule: a valid one.
        budget: in bytes, `fixed_bytes` included.
        deadline: as `time.monotonic` counts; what is dropped by then is dropped.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> graph = unit_chain(2)
        >>> again = Schedule([0, 1, 0, 2, 0, 1, 3, 4])
        >>> len(trimmed(graph, again, 100, time.monotonic() + 10).steps) == len(graph)
        True
    """
    steps: list[int | None] = list(schedule.steps)
    has_changed = True
    while has_changed:
        has_changed = False
        for position in _recomputations(graph, steps):
            if time.monotonic() >= deadline:
                return _schedule(steps)
            dropped, steps[position] = steps[position], None
            try:
                keeps = simulate(graph, _schedule(steps)).peak <= budget
            except ScheduleError:  # what was overwritten since can't be retained
                keeps = False
            if keeps:
                has_changed = True
            else:
                steps[position] = dropped
    return _schedule(steps)


def _recomputations(graph: ComputationGraph, steps: Sequence[int | None]) -> list[int]:
    """Positions of computations that are not a node's first, dear ones first."""
    seen: set[int] = set()
    found = []
    for position, number in enumerate(steps):
        if number in seen:
            found.append(position)
        elif number is not None:
            seen.add(number)
    return sorted(found, key=lambda position: -graph.nodes[steps[position] or 0].cost)


def _schedule(steps: Sequence[int | None]) -> Schedule:
    return Schedule([number for number in steps if number is not None])
