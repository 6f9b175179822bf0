"""From a point of the moments relaxation to a schedule, and to where that breaks the budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.cutting_planes.relaxation import Booleans, Cut
from solvers.graph import ComputationGraph, Schedule, simulate


@dataclass(frozen=True)
class Break:
    """A place where a schedule breaks the budget: what the next relaxation may look at there."""

    moments: frozenset[int]
    cuts: frozenset[Cut] = frozenset()


@dataclass(frozen=True)
class Extraction:
    """A schedule, and what the next relaxation has to look at.

    Attributes:
        schedule: None if a value was wanted that can no longer be computed.
        peak: of the schedule without `fixed_bytes`.
        breaks: the worst of each segment, the worst of all first; empty if under budget.
    """

    schedule: Schedule | None
    peak: int
    breaks: tuple[Break, ...]


class _ExpiredError(ValueError):
    """A value is wanted after it can no longer be computed; `args` are the moments to add."""


def extract(
    graph: ComputationGraph,
    budget: int,
    moments: tuple[int, ...],
    L: Booleans,
    R: Booleans,
    drop_early: bool,
) -> Extraction:
    """Recompute just in time, recursively, and what each moment wants.

    Args:
        budget: without `fixed_bytes`.
        drop_early: forget a value that is computed again in a segment at the segment's begin;
            else use it as long as it is there, which can only be cheaper.
    """
    steps: list[int] = []
    live: set[int] = set()
    segment = 0
    try:
        for j in range(len(graph)):
            is_moment = segment < len(moments) and moments[segment] == j
            wanted = list(graph.nodes[j].dependencies)
            if is_moment:
                wanted += [int(i) for i in np.flatnonzero(L[segment] & R[segment])]
            for i in wanted:
                _compute_again(graph, i, j, live, steps)
            steps.append(j)
            live.add(j)
            if is_moment:
                live = {int(i) for i in np.flatnonzero(L[segment])} | {j}
                segment += 1
                if drop_early:
                    live -= {int(i) for i in np.flatnonzero(R[segment])}
    except _ExpiredError as expired:
        return Extraction(None, 0, (Break(frozenset(expired.args)),))
    schedule = Schedule(steps).without_useless(graph)
    return _examine(graph, budget, moments, schedule)


def _compute_again(
    graph: ComputationGraph, wanted: int, stage: int, live: set[int], steps: list[int]
) -> None:
    """Append what it takes to have `wanted` live, its missing inputs first."""
    pending = [wanted]
    while pending:
        i = pending[-1]
        if i in live:
            pending.pop()
            continue
        node = graph.nodes[i]
        gone = [w for w in node.expired_by if w < stage]
        if gone or not node.recomputable:
            raise _ExpiredError(*gone)
        missing = [read for read in node.dependencies if read not in live]
        if missing:
            pending += missing
        else:
            steps.append(i)
            live.add(i)
            pending.pop()


def _examine(
    graph: ComputationGraph, budget: int, moments: tuple[int, ...], schedule: Schedule
) -> Extraction:
    """Find the worst step over budget of each segment: at a first computation it becomes a moment;
    at a repeat of q in stage j, j−1 and j become moments with a cut for q.
    """
    timeline = simulate(graph, schedule).timeline - graph.fixed_bytes
    worst: dict[int, tuple[int, int, int]] = {}
    reached = 0
    for position, node in enumerate(schedule.steps):
        is_first = node == reached
        memory = int(timeline[position])
        if memory > budget:
            segment = int(np.searchsorted(moments, reached))
            if memory > worst.get(segment, (0, 0, 0))[0]:
                worst[segment] = (memory, reached, -1 if is_first else node)
        reached += is_first
    breaks = []
    for _, stage, repeated in sorted(worst.values(), reverse=True):
        if repeated < 0:
            breaks.append(Break(frozenset({stage})))
        else:
            stages = frozenset({max(0, stage - 1), stage})
            breaks.append(Break(stages, frozenset({(stage, repeated)})))
    return Extraction(schedule, int(timeline.max()), tuple(breaks))
