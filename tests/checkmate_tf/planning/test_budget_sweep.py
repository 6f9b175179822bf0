"""Plans for many budgets on a device that has too little memory for some of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import tensorflow as tf

from checkmate_tf.graph.extraction import extract_step
from checkmate_tf.interrupts import Interrupts
from checkmate_tf.planning.budget_sweep import BudgetSweep
from checkmate_tf.planning.question import Question
from checkmate_tf.planning.request import parse_request
from checkmate_tf.planning.trial.trial_run import TrialRun
from checkmate_tf.plans.plan import Plan
from solvers import BudgetError, Schedule, simulate
from tests.dense_steps import loss_and_gradient, some_weights
from tests.messages import raises
from tests.steps import forecast_here


@pytest.fixture(scope="module")
def question() -> Question:
    step = tf.function(loss_and_gradient(some_weights(), 6))
    extracted = extract_step(step.get_concrete_function(tf.TensorSpec((2048, 64))))
    resident = extracted.graph.fixed_bytes
    unchanged = forecast_here(extracted, Schedule(range(len(extracted.graph))), resident).typical
    return Question(extracted, resident, unchanged, 0, unchanged, ())


def swept(
    question: Question, exhausts: Callable[[Schedule], bool], more: float = 1.0
) -> list[Plan]:
    """Plans for five budgets, each of which ran for trial and held `more` than was forecast."""

    def trial_run(schedule: Schedule, says_enough: object) -> TrialRun | None:
        held = int(more * forecast_here(question.extracted, schedule, question.resident).typical)
        return None if exhausts(schedule) else TrialRun((held,) * 4, None)

    request = parse_request("100%", "auto", None, "flops", 2.0, "fixed", True)
    search = BudgetSweep(question, request, trial_run, Interrupts())
    plans, stopped = search.plans(5, lambda done, what: None)
    assert not stopped
    return list(plans)


def test_where_the_unchanged_step_and_the_leanest_plans_exhaust_the_memory_others_are_found(
    question: Question,
) -> None:
    graph = question.extracted.graph
    tried: list[Schedule] = []

    def exhausts(schedule: Schedule) -> bool:
        tried.append(schedule)
        leanest = min(simulate(graph, each).peak for each in tried)
        return len(schedule) == len(graph) or simulate(graph, schedule).peak <= leanest

    plans = swept(question, exhausts)
    assert plans
    for plan in plans:
        assert (plan.measured_peak or plan.budget + 1) <= plan.budget
        assert not exhausts(plan.schedule)


def test_another_plan_of_the_least_memory_may_run_where_one_does_not(question: Question) -> None:
    tried: list[Schedule] = []

    def exhausts(schedule: Schedule) -> bool:
        tried.append(schedule)
        return len(tried) <= 2

    plans = swept(question, exhausts)
    assert plans[-1].measured_peak is not None
    assert len(tried) > 2


def test_where_every_plan_exhausts_the_memory_that_is_said(question: Question) -> None:
    with raises(BudgetError, "device-exhausted"):
        swept(question, lambda schedule: True)


def test_what_runs_in_place_of_the_unchanged_step_may_hold_more(question: Question) -> None:
    """At an allocator's limit gaps between buffers count as well."""
    nodes = len(question.extracted.graph)
    plans = swept(question, lambda schedule: len(schedule) == nodes, more=2.0)
    assert plans
    assert all((plan.measured_peak or plan.budget + 1) <= plan.budget for plan in plans)
