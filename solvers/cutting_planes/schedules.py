"""Candidates: schedules built from points of the relaxation, and where they violate the budget."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from solvers.cutting_planes.relaxation import Booleans, Cover, Cut
from solvers.graph import ComputationGraph, Schedule, simulate
from solvers.graph.lifetimes import held_at


@dataclass(frozen=True)
class Violation:
    """A place where a candidate violates the budget: what would constrain the relaxation there."""

    critical_steps: frozenset[int]
    cuts: frozenset[Cut] = frozenset()
    covers: frozenset[Cover] = frozenset()


@dataclass(frozen=True)
class Candidate:
    """A schedule, under budget or not.

    Attributes:
        schedule: None if a value is read that can no longer be computed.
        peak: of the schedule in bytes, without `fixed_bytes`.
        violations: the worst of each segment, the worst of all first; empty if under budget.
    """

    schedule: Schedule | None
    peak: int
    violations: tuple[Violation, ...]


class _ExpiredError(ValueError):
    """A value is read after it can no longer be computed; `args` are the steps to constrain."""


def build_candidate(
    graph: ComputationGraph,
    budget: int,
    critical_steps: tuple[int, ...],
    L: Booleans,
    R: Booleans,
    drop_early: bool,
) -> Candidate:
    """The schedule that has live at each critical step what `L` says.

    Whatever is missing is recomputed just before it is read, with its inputs.

    Args:
        budget: in bytes, without `fixed_bytes`.
        L, R: a point of the relaxation; see `cutting_planes.relaxation`.
        drop_early: drop a value that is recomputed in a segment at the begin of that segment.
            Else it is read as long as it is there, which can only cost less.
    """
    try:
        steps = _steps(graph, critical_steps, L, R, drop_early)
    except _ExpiredError as expired:
        return Candidate(None, 0, (Violation(frozenset(expired.args)),))
    schedule = Schedule(steps).without_useless(graph)
    timeline = simulate(graph, schedule).timeline - graph.fixed_bytes
    worst = _worst_steps(schedule, timeline.tolist(), budget, critical_steps)
    violations = tuple(
        _violation(graph, schedule, stage, recomputed, stage in critical_steps)
        for _, stage, recomputed in sorted(worst, reverse=True)
    )
    return Candidate(schedule, int(timeline.max()), violations)


def _steps(
    graph: ComputationGraph,
    critical_steps: tuple[int, ...],
    L: Booleans,
    R: Booleans,
    drop_early: bool,
) -> list[int]:
    steps: list[int] = []
    live: set[int] = set()
    segment = 0
    for j in range(len(graph)):
        is_critical = segment < len(critical_steps) and critical_steps[segment] == j
        needed = list(graph.nodes[j].dependencies)
        if is_critical:
            needed += np.flatnonzero(L[segment] & R[segment]).tolist()
        for i in needed:
            _recompute(graph, i, j, live, steps)
        steps.append(j)
        live.add(j)
        if is_critical:
            live = {*np.flatnonzero(L[segment]).tolist(), j}
            segment += 1
            if drop_early:
                live -= set(np.flatnonzero(R[segment]).tolist())
    return steps


def _recompute(
    graph: ComputationGraph, needed: int, stage: int, live: set[int], steps: list[int]
) -> None:
    """Append what it takes to have `needed` live, its missing inputs first."""
    pending = [needed]
    while pending:
        i = pending[-1]
        if i in live:
            pending.pop()
            continue
        node = graph.nodes[i]
        expired_at = [w for w in node.expired_by if w < stage]
        if expired_at or not node.recomputable:
            raise _ExpiredError(*expired_at)
        missing = [read for read in node.dependencies if read not in live]
        if missing:
            pending += missing
        else:
            steps.append(i)
            live.add(i)
            pending.pop()


def _worst_steps(
    schedule: Schedule, timeline: list[int], budget: int, critical_steps: tuple[int, ...]
) -> Iterable[tuple[int, int, int]]:
    """For each segment over budget: its peak, the stage of that, and what is recomputed there.

    In place of the last stands −1 where it is a first computation.
    """
    worst: dict[int, tuple[int, int, int]] = {}
    stage = 0
    for node, memory in zip(schedule.steps, timeline, strict=True):
        is_first = node == stage
        if memory > budget:
            segment = int(np.searchsorted(critical_steps, stage))
            if memory > worst.get(segment, (0, 0, 0))[0]:
                worst[segment] = (memory, stage, -1 if is_first else node)
        stage += is_first
    return worst.values()


def _violation(
    graph: ComputationGraph, schedule: Schedule, stage: int, recomputed: int, is_critical: bool
) -> Violation:
    """A first computation becomes critical; a recomputation gives a cut between two such steps.

    A critical step may be over budget all the same, by so little that the backend took it for none:
    it gets a cover.
    """
    if recomputed >= 0:
        return Violation(frozenset({max(0, stage - 1), stage}), frozenset({(stage, recomputed)}))
    if not is_critical:
        return Violation(frozenset({stage}))
    held = held_at(graph, schedule, schedule.steps.index(stage))
    values = frozenset(i for i, memory in held.items() if memory and i != stage)
    return Violation(frozenset({stage}), covers=frozenset({(stage, values)}))
