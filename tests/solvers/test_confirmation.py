"""A solver of one's own is believed only what the simulator and plain sums confirm."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from solvers import SOLVERS, AnswerError, Problem, Schedule, Solution, Status, solve
from solvers.api import SolverEntry
from solvers.comparison import cases, run_case
from solvers.problem import answer
from tests.graphs import SKIP
from tests.messages import raises

ONCE, TWICE = Schedule([0, 1, 2, 3, 4]), Schedule([0, 1, 2, 3, 0, 4])
"""Of SKIP: cost 5 at 9 bytes, cost 6 at 6 bytes."""

REVERSED = Schedule(reversed(range(5)))

_claimed: Any = None


def solve_mine(problem: Problem) -> Any:
    """A solver of one's own, which answers whatever the test wants it to."""
    return _claimed


def solve_by_answer(problem: Problem) -> Solution:
    """A solver of one's own that uses this project's way to answer."""
    return answer(problem, "mine", REVERSED)


@pytest.fixture
def claim(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the solver "mine" answer what is given, by default a modest truth about SKIP."""
    entry = SolverEntry("mine", "exact", "any", "", (), "my own", f"{__name__}:solve_mine")
    monkeypatch.setitem(SOLVERS, "mine", entry)

    def set_claim(**fields: Any) -> None:
        modest = Solution("mine", Status.FEASIBLE, TWICE, 6, 6, 5, 0.1)
        monkeypatch.setitem(globals(), "_claimed", replace(modest, **fields))

    return set_claim


def test_a_true_answer_is_handed_on(claim: Any) -> None:
    claim(statistics={"rounds": 3}, note="so", seconds=0.25)
    solution = solve(SKIP, 7, "mine")
    assert (solution.status, solution.schedule, solution.bound) == (Status.FEASIBLE, TWICE, 5)
    assert (solution.statistics, solution.note, solution.seconds) == ({"rounds": 3}, "so", 0.25)
    assert (solution.budget, solution.least_budget) == (7, 6)
    claim(status=Status.OPTIMAL, bound=6)
    assert solve(SKIP, 7, "mine").status is Status.OPTIMAL


def test_cost_and_peak_are_the_simulators(claim: Any) -> None:
    claim(cost=1, peak=1, solver="milp")
    solution = solve(SKIP, 7, "mine")
    assert (solution.solver, solution.cost, solution.peak) == ("mine", 6, 6)


@pytest.mark.parametrize("status", [Status.OPTIMAL, Status.FEASIBLE])
def test_a_schedule_over_budget_is_not_feasible(claim: Any, status: Status) -> None:
    claim(schedule=ONCE, cost=5, peak=1, bound=5, status=status)
    solution = solve(SKIP, 8, "mine")
    assert (solution.status, solution.schedule) == (Status.TIMEOUT, None)
    assert (solution.cost, solution.peak, solution.least_budget) == (None, None, 9)
    assert "needs 9 B" in solution.note


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"schedule": REVERSED}, ("computed-too-early", "'mine'", "step 0", "'skip4'")),
        ({"schedule": [0, 1, 2, 3, 4]}, ("answer-not-a-schedule", "list")),
        ({"bound": 6.1}, ("claim-refuted", 6.1, "costs 6")),
        ({"bound": math.nan}, ("claim-refuted", "nan")),
        ({"status": Status.OPTIMAL, "bound": 5}, ("optimum-unproved", "cost of 6", "bound of 5")),
        ({"status": Status.OPTIMAL, "bound": None}, ("optimum-unproved", "cost of 6")),
        ({"schedule": None}, ("status-contradicts-schedule", "feasible")),
        ({"status": Status.INFEASIBLE}, ("claim-refuted", "infeasible", "6 bytes")),
        ({"least_budget": 5}, ("claim-refuted", "5 bytes", "takes 6")),
        ({"provable_budget": 7}, ("claim-refuted", "7 bytes", "takes 6")),
    ],
)
def test_a_claim_that_is_not_true_is_refused(
    claim: Any, fields: dict[str, Any], told: tuple[str, ...]
) -> None:
    claim(**fields)
    with raises(AnswerError, *told):
        solve(SKIP, 7, "mine")


def test_one_pass_under_budget_refutes_too(claim: Any) -> None:
    claim(status=Status.INFEASIBLE, schedule=None, bound=None)
    with raises(AnswerError, "claim-refuted", "infeasible", "9 bytes"):
        solve(SKIP, 9, "mine")
    claim(bound=5.5)
    with raises(AnswerError, "claim-refuted", 5.5, "costs 5"):
        solve(SKIP, 9, "mine")


def test_something_else_than_a_solution_is_refused(
    claim: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "_claimed", TWICE)
    with raises(AnswerError, "answer-not-a-solution", "'mine'", "Schedule"):
        solve(SKIP, 7, "mine")


def test_a_schedule_that_the_solver_could_not_have_executed_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    location = f"{__name__}:solve_by_answer"
    monkeypatch.setitem(
        SOLVERS, "mine", SolverEntry("mine", "exact", "any", "", (), "my own", location)
    )
    with raises(AnswerError, "computed-too-early", "'mine'", "step 0", "'skip4'"):
        solve(SKIP, 7, "mine")


def test_the_order_that_was_asked_for_is_kept(claim: Any) -> None:
    free = Schedule([0, 1, 3, 2, 4])
    graph = replace(
        SKIP,
        nodes=tuple(
            replace(node, dependencies=(1,)) if number == 3 else node
            for number, node in enumerate(SKIP.nodes)
        ),
    )
    claim(schedule=free, cost=5, bound=5, status=Status.OPTIMAL)
    with raises(AnswerError, "answer-in-another-order", "'skip3' before 'skip2'"):
        solve(graph, 100, "mine")
    assert solve(graph, 100, "mine", order="free").status is Status.OPTIMAL  # one pass is least
    claim(schedule=TWICE, bound=6, status=Status.OPTIMAL)
    with raises(AnswerError, "optimum-unproved"):
        solve(SKIP, 7, "mine", order="free")
    claim(schedule=TWICE, bound=6, bound_order="free", status=Status.OPTIMAL)
    assert solve(SKIP, 7, "mine", order="free").status is Status.OPTIMAL


def test_a_comparison_names_the_wrong_answer(claim: Any) -> None:
    claim(schedule=REVERSED, peak=1)
    (case,) = cases([SKIP], ["7"], ["mine"])
    row = run_case(case)
    assert (row.status, row.cost, row.peak) == ("wrong answer", None, None)
    assert "solver 'mine'" in row.note
