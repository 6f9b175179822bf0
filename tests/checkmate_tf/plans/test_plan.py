from __future__ import annotations

from dataclasses import replace

import pytest

from checkmate_tf.plans.plan import Plan
from solvers import Solution, Status, solve
from tests.graphs import SKIP


def plan_of(solution: Solution) -> Plan:
    """A plan whose budget leaves room for what the allocator wastes."""
    assert solution.schedule is not None
    assert solution.cost is not None
    return Plan(SKIP, solution.schedule, 4096, 3000, 9000, solution.cost / 5 - 1, solution)


def test_the_text_claims_nothing_of_the_users_budget_that_was_proved_of_the_solvers() -> None:
    solution = solve(SKIP, 7, "cutting_planes")
    assert solution.status is Status.OPTIMAL
    text = str(plan_of(solution))
    assert "optimal" not in text
    assert "cutting_planes" in text
    assert "asked for 7 B of live values" in text
    assert "at most 0.00 % above the least for that, in this order" in text


def test_the_text_says_how_far_from_the_least_the_plan_may_be() -> None:
    text = str(plan_of(solve(SKIP, 7, "checkpoint_last")))
    assert "how far above the least for that is not known" in text


@pytest.mark.parametrize("budget", [7, 9])
def test_lines_fit_a_terminal(budget: int) -> None:
    for name in ("milp", "cutting_planes", "auto"):
        text = str(plan_of(solve(SKIP, budget, name, 5)))
        assert max(map(len, text.splitlines())) < 80


def test_the_first_step_is_told_where_it_held_more() -> None:
    plan = replace(plan_of(solve(SKIP, 7, "cutting_planes")), measured_peak=2048)
    assert "4.0 KiB (measured while" in str(replace(plan, first_peak=4096))
    assert str(replace(plan, first_peak=2048)) == str(plan)
    assert Plan.from_json(replace(plan, first_peak=4096).to_json()).first_peak == 4096


def test_only_seconds_are_called_time() -> None:
    plan = plan_of(solve(SKIP, 7, "cutting_planes"))
    for unit, label in {"s": "extra time", "FLOP": "extra FLOP", "": "extra cost"}.items():
        text = str(replace(plan, graph=replace(SKIP, cost_unit=unit)))
        assert f"{label:<22}20.0 % (predicted)" in text


def test_a_plan_is_short_where_it_is_not_printed() -> None:
    plan = plan_of(solve(SKIP, 7, "cutting_planes"))
    assert repr(plan) == "<Plan of 'skip': 2.9 KiB of 4.0 KiB, 20.0 % more cost>"
