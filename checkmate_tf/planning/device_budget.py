"""The budget "device": its bytes when a plan is made, and whether the unchanged step fits."""

from __future__ import annotations

from dataclasses import replace

from checkmate_tf.devices.device import Device
from checkmate_tf.planning.baseline import Baseline
from checkmate_tf.planning.expectation import Expectation
from checkmate_tf.planning.outcome import Outcome
from checkmate_tf.planning.plan_maker import PlanMaker
from checkmate_tf.planning.question import Question
from checkmate_tf.planning.request import Request
from checkmate_tf.planning.settings import ROOM_FOR_UNCHANGED
from solvers import Budget, BudgetError


def for_device(request: Request, device: Device) -> Request:
    """The request with its budget in bytes where that is whatever `device` can hold now.

    Raises:
        BudgetError: nothing tells what it can hold.
    """
    if not request.budget.device:
        return request
    room = device.room()
    if room is None:
        raise BudgetError(
            "budget-of-a-device",
            f"nothing tells here what {device.name} can hold; give a budget, like budget='4GiB'",
        )
    return replace(request, budget=Budget(bytes=room.bytes), budget_from=room.why)


def fits_clearly(question: Question) -> bool:
    """Whether the unchanged step fits even if it adds twice as much as it is expected to."""
    adds = question.baseline_peak - question.resident
    return question.resident + ROOM_FOR_UNCHANGED * adds <= question.limit


def unchanged_where_it_fits(question: Question, baseline: Baseline) -> Outcome | None:
    """The step as it is, in TensorFlow's own order, where it is known to fit; else None."""
    measured, limit = baseline.measured, question.limit
    if measured is None and not fits_clearly(question):
        return None
    if measured is not None:
        room = question.device.scatter * (measured - question.resident)
        if measured + room > limit:
            return None
    question = replace(question, measured_baseline_peak=measured)
    plan = PlanMaker(question, Expectation(question), None).unchanged().plan
    peak = plan.baseline_peak if measured is None else measured
    plan = replace(plan, predicted_peak=peak, measured_peak=measured)
    return Outcome(plan, question.extracted, runs_plain=True)
