"""Errors about budgets that no plan keeps; each names a budget that will do."""

from __future__ import annotations

from math import ceil

from checkmate_tf.planning.largest_loop import about_the_largest_loop
from checkmate_tf.planning.outcome import Outcome
from checkmate_tf.planning.question import Question
from checkmate_tf.planning.settings import FOUND_AGAIN
from checkmate_tf.plans.plan import Plan
from solvers import BudgetError, Solution, Status, format_bytes
from solvers.local_search.least_memory import LeastMemory


class TooSmallError(BudgetError):
    """No plan keeps the budget.

    Attributes:
        leanest: the plan that needs the least, of those that were found; None where each of them
            exhausted the device's memory.
        needs: bytes that the device would rarely hold more than by it.
    """

    def __init__(
        self,
        code: str,
        message: str,
        least: int | None = None,
        leanest: Outcome | None = None,
        needs: int | None = None,
    ) -> None:
        """`least` are bytes that are enough for the leanest plan, also where it is found again."""
        super().__init__(code, message, least)
        self.leanest = leanest
        self.needs = needs


def no_schedule(
    question: Question,
    solver: str,
    failed: Solution,
    known: LeastMemory,
    leanest: Outcome,
    needs: int,
) -> TooSmallError:
    """An error about a budget for which there is no schedule.

    Args:
        question: of the step.
        solver: what was asked for one.
        failed: its answer.
        known: the schedule of the least memory that was found.
        leanest: the plan by that one, or by one that needs as little.
        needs: bytes that the device would rarely hold more than by it.
    """
    graph = question.extracted.graph
    beside = question.resident - graph.fixed_bytes
    least = _enough(question, needs)
    if known.peak + beside <= question.limit:
        return TooSmallError(
            "solver-found-nothing",
            f"{solver!r} found no schedule within {format_bytes(question.limit)}, "
            f"though there is one of {format_bytes(known.peak + beside)}: give it a longer "
            "time_limit, or take another solver",
            least,
            leanest,
            needs,
        )
    # What the margin alone makes impossible is not impossible within the budget.
    proved = failed.status is Status.INFEASIBLE and not question.margin
    how = "no schedule exists" if proved else "no schedule was found"
    return TooSmallError(
        "budget-too-small",
        f"{question.bound}, {format_bytes(question.available, least)}, is too small: "
        f"{how} within it, "
        f"{format_bytes(question.resident)} of it variables, inputs and what else is held. "
        + _what_would_do(question, leanest.plan, least)
        + _impossible_below(question, leanest.plan, known.bound + beside)
        + about_the_largest_loop(question.extracted, known.peak - graph.fixed_bytes),
        least,
        leanest,
        needs,
    )


def held_more(question: Question, held: int, leanest: Outcome, needs: int) -> TooSmallError:
    """An error about plans that held more than the budget when they ran.

    Args:
        question: of the step.
        held: the least bytes that one of them held.
        leanest: the one of which the device is expected to hold the least.
        needs: bytes that it would rarely hold more than by that one.
    """
    least = _enough(question, needs)
    return TooSmallError(
        "budget-too-small",
        f"{question.bound}, {format_bytes(question.available, held)}, is too small: "
        f"the leanest plan found held {format_bytes(held, question.available)} in a trial run, "
        f"{format_bytes(question.resident)} of it variables, inputs and what else is held. "
        f"{_what_would_do(question, leanest.plan, least)}",
        least,
        leanest,
        needs,
    )


def leanest_instead(error: TooSmallError, exhausted: Outcome, question: Question) -> Outcome:
    """The leanest plan found, where a step has exhausted the device's memory by a larger one.

    What it lacked lay in pieces: a plan that takes less, though not as much less as was asked for,
    may find room in them.

    Args:
        error: no plan takes as much less.
        exhausted: the step by the plan that failed.
        question: what was asked for.

    Raises:
        TooSmallError: `error`; the leanest takes no less, or more than the budget.
    """
    leanest = error.leanest
    if leanest is None or leanest.plan.peak > question.budget:
        raise error
    origin = exhausted.plan.origin
    before = exhausted.extracted.graph.fixed_bytes if origin is None else origin.resident
    if leanest.plan.peak - question.resident >= exhausted.plan.peak - before:
        raise error
    return leanest


def _enough(question: Question, needs: int) -> int:
    """The bytes to name: a little more than those, or than the unchanged step needs."""
    least = int(FOUND_AGAIN * needs)
    own = question.resident + int(FOUND_AGAIN * (needs - question.resident))
    unchanged = question.measured_baseline_peak or least
    return min(least, max(own, unchanged))


def _impossible_below(question: Question, leanest: Plan, bound: int) -> str:
    """A sentence; "" where a step has run in less, for the sizes of some values are guesses."""
    held = (question.measured_baseline_peak, leanest.measured_peak)
    if any(each is not None and each < bound for each in held):
        return ""
    return (
        f". By the values alone that are live at once, none is possible below {format_bytes(bound)}"
    )


def _what_would_do(question: Question, leanest: Plan, least: int) -> str:
    """Two sentences: what the unchanged step needs, and what to write instead."""
    measured = question.measured_baseline_peak
    unchanged = measured or question.baseline_peak
    how = "measured" if measured else "forecast"
    told = f"The unchanged step needs {format_bytes(unchanged)} ({how}). "
    was_tried = leanest.measured_peak is not None
    told += "What does, as a trial run has shown," if was_tried else "What is likely to do"
    told += f" is {format_bytes(least, question.available)} or more"
    if question.available < question.budget:
        return f"{told}: take a smaller batch"
    told += f": budget={least}"
    before = question.resident - question.extracted.program.constant_bytes
    if before < least < unchanged:
        share = (least - before) / (unchanged - before)
        told += f", or budget={ceil(100 * share) / 100:g}"
    return told + '; budget="min", or on_infeasible="min", takes the least that is found'
