from __future__ import annotations

import time
from typing import Any

import pytest

from solvers import Problem, Progress, Schedule, ScheduleError, Status, solve
from solvers.graph.bounds import needs
from solvers.problem import answer
from tests.graphs import SKIP
from tests.messages import raises

ONCE, TWICE = Schedule([0, 1, 2, 3, 4]), Schedule([0, 1, 2, 3, 0, 4])
"""Of SKIP: cost 5 at 9 bytes, cost 6 at 6 bytes."""


@pytest.mark.parametrize(
    ("budget", "schedule", "said", "status", "cost", "peak", "least"),
    [
        (9, ONCE, {}, Status.FEASIBLE, 5, 9, 9),
        (9, ONCE, {"proved": True}, Status.OPTIMAL, 5, 9, 9),
        (10, TWICE, {}, Status.FEASIBLE, 6, 6, 6),
        (9, ONCE, {"least_budget": 6}, Status.FEASIBLE, 5, 9, 6),
        (9, TWICE, {"least_budget": 8}, Status.FEASIBLE, 6, 6, 6),
        # over budget: dropped, whatever the solver thinks of it
        (8, ONCE, {}, Status.TIMEOUT, None, None, 9),
        (8, ONCE, {"proved": True}, Status.TIMEOUT, None, None, 9),
        (5, TWICE, {"infeasible": True}, Status.INFEASIBLE, None, None, 6),
        (8, ONCE, {"least_budget": 7}, Status.TIMEOUT, None, None, 7),
        # one node needs 6: a proof, whoever was asked
        (5, ONCE, {"least_budget": 7}, Status.INFEASIBLE, None, None, 7),
        # nothing found
        (9, None, {}, Status.TIMEOUT, None, None, None),
        (9, None, {"proved": True}, Status.TIMEOUT, None, None, None),
        (9, None, {"infeasible": True}, Status.INFEASIBLE, None, None, None),
        (5, None, {"infeasible": True, "least_budget": 6}, Status.INFEASIBLE, None, None, 6),
    ],
)
def test_an_answer_has_passed_the_simulator(
    budget: int,
    schedule: Schedule | None,
    said: dict[str, Any],
    status: Status,
    cost: float | None,
    peak: int | None,
    least: int | None,
) -> None:
    solution = answer(Problem(SKIP, budget), "me", schedule, bound=4.5, note="so", **said)
    assert solution.status is status
    assert solution.schedule == (schedule if cost is not None else None)
    assert (solution.cost, solution.peak, solution.least_budget) == (cost, peak, least)
    assert (solution.solver, solution.bound, solution.note) == ("me", 4.5, "so")


def test_a_schedule_that_cannot_run_is_no_answer() -> None:
    with raises(ScheduleError, "node-never-computed"):
        answer(Problem(SKIP, 100), "me", Schedule([0, 1]))


@pytest.mark.parametrize("solver", ["auto", "search", "cutting_planes", "milp", "lp_rounding"])
def test_a_node_that_is_over_budget_alone_is_named(solver: str) -> None:
    assert Problem(SKIP, 5).is_hopeless
    assert not Problem(SKIP, 6).is_hopeless
    solution = solve(SKIP, 5, solver, 10)
    largest = max(SKIP.nodes, key=lambda node: needs(SKIP)[SKIP.nodes.index(node)])
    assert solution.status is Status.INFEASIBLE
    assert repr(largest.name) in solution.note
    assert "6 bytes" in solution.note


def test_statistics_are_the_answers_own() -> None:
    figures = {"nodes": 3}
    solution = answer(Problem(SKIP, 100), "me", ONCE, statistics=figures)
    figures["nodes"] = 4
    assert solution.statistics == {"nodes": 3}


def test_the_clock_runs_from_the_question() -> None:
    problem = Problem(SKIP, 100, time_limit=5000, started=time.monotonic() - 20)
    assert 20 <= problem.seconds < 1000
    assert 4000 < problem.seconds_left <= 4980
    assert 20 <= answer(problem, "me", ONCE).seconds < 1000
    assert Problem(SKIP, 100, time_limit=1, started=time.monotonic() - 20).seconds_left == 0


def test_progress_reaches_who_listens() -> None:
    heard: list[Progress] = []
    Problem(SKIP, 100, on_progress=heard.append).report(7, None, "first")
    Problem(SKIP, 100).report(8, 1)
    (word,) = heard
    assert (word.cost, word.bound, word.phase) == (7, None, "first")
    assert 0 <= word.seconds < 1000  # since the question, not since the machine started


@pytest.mark.parametrize("status", Status)
def test_a_status_prints_as_its_word(status: Status) -> None:
    assert f"{status}" == str(status) == status.value == status.name.lower()
