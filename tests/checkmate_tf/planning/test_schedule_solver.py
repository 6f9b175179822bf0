"""Schedules of one graph, one after the other: each search has what the one before it found."""

from __future__ import annotations

import pytest

from checkmate_tf.interrupts import Interrupts
from checkmate_tf.planning.schedule_solver import ScheduleSolver
from solvers import Status, simulate
from solvers.graph.layer_graphs import unit_chain

GRAPH = unit_chain(40)


def solver(name: str, time_limit: float) -> ScheduleSolver:
    return ScheduleSolver(GRAPH, name, "fixed", time_limit, Interrupts())


def test_a_search_without_time_of_its_own_returns_what_is_known() -> None:
    patient, hasty = solver("search", 5.0), solver("search", 1e-3)
    known = patient.solved(12, 1.0)
    assert known.cost is not None
    hasty.known = patient.known
    solution = hasty.solved(12, 1.0)
    assert solution.cost is not None
    assert solution.cost <= known.cost


def test_rules_need_nothing_to_begin_with() -> None:
    rule = solver("ap_sqrt", 5.0)
    for _ in range(2):
        solution = rule.solved(20, 0.5)
        assert solution.schedule is not None
        assert rule.known == [solution.schedule]


@pytest.mark.parametrize("activations", [12, None])
def test_bytes_are_those_of_the_activations(activations: int | None) -> None:
    solution = solver("auto", 2.0).solved(activations, 0.5)
    assert solution.schedule is not None
    peak = simulate(GRAPH, solution.schedule).peak
    assert peak <= GRAPH.fixed_bytes + (activations or peak)


def test_what_does_not_fit_is_no_schedule() -> None:
    solution = solver("auto", 2.0).solved(1, 0.5)
    assert solution.status is Status.INFEASIBLE
    assert solution.schedule is None
