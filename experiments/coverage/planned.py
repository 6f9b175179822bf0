"""A training by a plan, for the first of several budgets that some plan keeps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    """

    result: Result
    plan: Any
    asked: str
    messages: tuple[str, ...]


def within(
    budgets: Sequence[Any], train: Callable[[Decorate], Result], **options: Any
) -> Planned[Result]:
    """Train by a plan.

    Args:
        budgets: the first one that some plan keeps is taken.
        train: trains by steps that are decorated so.
        options: of `rematerialize`, for instance `time_limit`.

    Raises:
        BudgetError: no plan keeps the last one.
    """
    said: list[str] = []
    named: int | None = None
    refused: BudgetError | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for budget in budgets:
            asked = named if budget == NAMED else budget
            if asked is None:
                continue
            steps: list[Any] = []

            def by_a_plan(
                step: Any, asked: Any = asked, steps: list[Any] = steps, **more: Any
            ) -> Any:
                steps.append(checkmate_tf.rematerialize(step, budget=asked, **options, **more))
                return steps[-1]

            try:
                result = train(by_a_plan)
            except BudgetError as error:
                named, refused = error.least, error
                said.append(told(error))
            else:
                plan = getattr(steps[-1], "plan", None)
                said += [_message(each) for each in caught if _is_ours(each)]
                said += () if plan is None else plan.notes
                shown = "unchanged" if plan is None else str(budget)
                return Planned(result, plan, shown, tuple(dict.fromkeys(said)))
    assert refused is not None
    raise refused


def told(error: Exception) -> str:
    """An error in a line."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[-1]}"[:200]


def _message(warning: warnings.WarningMessage) -> str:
    return str(warning.message).removeprefix("checkmate_tf: ")


def _is_ours(warning: warnings.WarningMessage) -> bool:
    return isinstance(warning.message, checkmate_tf.CheckmateWarning)
