"""The unchanged step as the answer, where no plan takes less."""

from __future__ import annotations

from dataclasses import replace

from checkmate_tf.planning.candidate import Candidate
from checkmate_tf.planning.outcome import Outcome
from checkmate_tf.planning.question import Question
from checkmate_tf.user_warnings import warn_user
from solvers import format_bytes


def plain_instead(question: Question, unchanged: Candidate, needs: int | None) -> Outcome | None:
    """The step as it is, if it was measured to keep the budget, or to need no more than any plan.

    A line says so. None where it needs more.

    Args:
        question: what there is before planning.
        unchanged: the plan that recomputes nothing.
        needs: bytes that the leanest plan found needs; None where none runs here.
    """
    measured = question.measured_baseline_peak
    if measured is None:
        return None
    a_plan_saves = needs is None or needs < measured  # of those that exhausted it, nothing is known
    if measured > question.limit and a_plan_saves:
        return None
    note = (
        f"no plan saves memory here: the step takes {format_bytes(measured)} as it is, and runs "
        "unchanged"
    )
    if measured > question.limit:
        note += (
            f", over the budget of {format_bytes(question.budget)}; what takes less is a smaller "
            "batch, or several small ones whose gradients are added up"
        )
    warn_user("no-plan-saves-memory", note)
    plan = replace(
        unchanged.plan,
        predicted_peak=measured,
        measured_peak=measured,
        measured_baseline_peak=measured,
        notes=(*question.notes, note),
    )
    keeps = measured <= question.limit
    return Outcome(plan, question.extracted, keeps=keeps, runs_plain=True)
