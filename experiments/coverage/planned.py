"""A training by a plan, for the first of several budgets that some plan keeps."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import checkmate_tf
from experiments.coverage.kind import Decorate
from solvers import BudgetError

SHARE = 0.6
"""The budget, as a share of what the step adds to the memory before it."""

NAMED = "named"
"""The budget that the error about the one before names, in bytes: it has to do."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Planned(Generic[Result]):
    """What a training came to.

    Attributes:
        result: of the training.
        plan: None where nothing can be recomputed.
        asked: the budget that was asked for and planned; "unchanged" where there is no plan.
        messages: what was warned of, and the plan's notes.
        codes: of the warnings.
    """

    result: Result
    plan: Any
    asked: str
    messages: tuple[str, ...]
    codes: tuple[str, ...]


def within(
    budgets: Sequence[Any], train: Callable[[Decorate], Result], **options: Any
) -> Planned[Result]:
    """Train by a plan.

    Args:
        budgets: the first one that some plan keeps is taken; the last is no NAMED one.
        train: trains by steps that are decorated so.
        options: of `rematerialize`, for instance `time_limit`.

    Raises:
        BudgetError: no plan keeps the last one.
    """
    said: list[str] = []
    named: int | None = None
    for budget in budgets:
        asked = named if budget == NAMED else budget
        if asked is None:
            continue
        gc.collect()
        try:
            planned = _by_a_plan(asked, train, **options)
        except BudgetError as error:  # not kept: its traceback would keep the variables
            if budget == budgets[-1]:
                raise
            named = error.least
            said.append(told(error))
        else:
            messages = tuple(dict.fromkeys((*said, *planned.messages)))
            shown = planned.asked if planned.plan is None else str(budget)
            return replace(planned, asked=shown, messages=messages)
    raise ValueError("no budget was given")


def _by_a_plan(budget: Any, train: Callable[[Decorate], Result], **options: Any) -> Planned[Result]:
    steps: list[Any] = []

    def decorate(step: Any, **more: Any) -> Any:
        steps.append(checkmate_tf.rematerialize(step, budget=budget, **options, **more))
        return steps[-1]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = train(decorate)
    plan = getattr(steps[-1], "plan", None)
    warned = [each.message for each in caught]
    ours = [each for each in warned if isinstance(each, checkmate_tf.CheckmateWarning)]
    return Planned(
        result,
        plan,
        asked="unchanged" if plan is None else str(budget),
        messages=(
            *(str(each).removeprefix("checkmate_tf: ") for each in ours),
            *(() if plan is None else plan.notes),
        ),
        codes=tuple(dict.fromkeys(each.code for each in ours)),
    )


def told(error: Exception) -> str:
    """An error in a line."""
    lines = str(error).strip().splitlines() or [""]
    # TensorFlow's end with the node, and what became of others.
    others = ("[[{{", "errors ignored.", "successful operations.")
    lines = [each for each in lines if not any(map(each.__contains__, others))] or lines
    return f"{type(error).__name__}: {lines[-1]}"[:200]
