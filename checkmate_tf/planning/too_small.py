"""Errors about budgets that no plan keeps; each names a budget that will do."""

from __future__ import annotations

from math import ceil

from checkmate_tf.planning.largest_loop import about_the_largest_loop
from checkmate_tf.planning.settings import FOUND_AGAIN
from checkmate_tf.planning.situation import Situation
from checkmate_tf.plans.plan import Plan
from solvers import BudgetError, Solution, Status, format_bytes
from solvers.local_search.least_memory import LeastMemory


def no_schedule(
    situation: Situation, solver: str, failed: Solution, known: LeastMemory, needs: int
) -> BudgetError:
    """An error about a budget for which there is no schedule.

    Args:
        situation: of the step.
        solver: what was asked for one.
        failed: its answer.
        known: the schedule of the least memory that was found.
        needs: bytes that the device would rarely hold more than by that one.
    """
    graph = situation.extracted.graph
    beside = situation.resident - graph.fixed_bytes
    least = int(FOUND_AGAIN * max(known.peak + beside, needs))
    if known.peak + beside <= situation.limit:
        return BudgetError(
            f"{solver!r} found no schedule within {format_bytes(situation.limit)}, "
            f"though there is one of {format_bytes(known.peak + beside)}: give it a longer "
            "time_limit, or take another solver",
            least=least,
        )
    # What the margin alone makes impossible is not impossible within the budget.
    proved = failed.status is Status.INFEASIBLE and not situation.margin
    how = "no schedule exists" if proved else "no schedule was found"
    return BudgetError(
        f"budget {format_bytes(situation.budget, least)} is too small: {how} within it, "
        f"{format_bytes(situation.resident)} of it variables, inputs and what else is held. "
        f"{_what_would_do(situation, least)} By the values alone that are live at once, none is "
        f"possible below {format_bytes(known.bound + beside)}"
        + about_the_largest_loop(situation.extracted, known.peak - graph.fixed_bytes),
        least=least,
    )


def held_more(situation: Situation, leanest: Plan, least: int) -> BudgetError:
    """An error about the leanest plan found, which held more than the budget when it ran.

    `least` are the bytes that the device would rarely hold more than by it.
    """
    held = leanest.measured_peak or 0
    return BudgetError(
        f"budget {format_bytes(situation.budget, held)} is too small: the leanest plan found held "
        f"{format_bytes(held, situation.budget)} in a trial run, "
        f"{format_bytes(situation.resident)} of it variables, inputs and what else is held. "
        f"{_what_would_do(situation, least)}",
        least=least,
    )


def _what_would_do(situation: Situation, least: int) -> str:
    """Two sentences: what the unchanged step needs, and what to write instead."""
    measured = situation.measured_baseline_peak
    unchanged = measured or situation.baseline_peak
    how = "measured" if measured else "forecast"
    told = f"The unchanged step needs {format_bytes(unchanged)} ({how}). "
    told += (
        f"What is likely to do is {format_bytes(least, situation.budget)} or more: budget={least}"
    )
    if situation.resident < least < unchanged:
        share = (least - situation.resident) / (unchanged - situation.resident)
        told += f", or budget={ceil(100 * share) / 100:g}"
    return told + '; budget="min", or on_infeasible="min", takes the least that is found.'
