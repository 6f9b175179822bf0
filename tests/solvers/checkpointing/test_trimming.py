"""Trimmed schedules stay under the budget, and nothing more can be dropped from them."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from solvers import Schedule, ScheduleError, simulate
from solvers.checkpointing.trimming import trimmed
from tests.brute_force import random_graph
from tests.graphs import NAMED


def everything_again(graph):
    """Before each node all that may run again runs again."""
    return Schedule(
        number
        for last in range(len(graph))
        for number in range(last + 1)
        if number == last or graph.nodes[number].recomputable
    )


def peak(graph, steps):
    try:
        return simulate(graph, Schedule(steps)).peak
    except ScheduleError:
        return float("inf")


GRAPHS = [each.graph for each in NAMED.values()] + [random_graph(seed) for seed in range(40)]
VALID = [each for each in GRAPHS if peak(each, everything_again(each).steps) < float("inf")]


def test_most_graphs_can_be_tried():
    assert len(VALID) > 25


@pytest.mark.parametrize("more", [0, 1, 4])
@pytest.mark.parametrize("graph", VALID)
def test_nothing_more_can_be_dropped(graph, more):
    before = everything_again(graph)
    budget = simulate(graph, before).peak + more
    after = trimmed(graph, before, budget, time.monotonic() + 60).steps
    assert peak(graph, after) <= budget
    assert not Counter(after) - Counter(before.steps)
    for position, number in enumerate(after):
        if number in after[:position]:
            assert peak(graph, after[:position] + after[position + 1 :]) > budget


def test_with_room_for_all_everything_runs_once():
    for graph in VALID:
        after = trimmed(graph, everything_again(graph), 10**9, time.monotonic() + 60)
        assert sorted(after.steps) == list(range(len(graph)))


def test_without_time_nothing_is_dropped():
    graph = VALID[0]
    before = everything_again(graph)
    assert trimmed(graph, before, 10**9, time.monotonic() - 1).steps == before.steps
