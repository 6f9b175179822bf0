"""Monitor training: a plan that takes more than its budget is made anew at first, and said."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import held_bytes, peak_bytes, reset_peak, run_measured
from checkmate_tf.planning.settings import LEANER_ATTEMPTS, MONITORED_STEPS
from checkmate_tf.user_warnings import warn_user
from solvers import BudgetError, format_bytes

Step = Callable[..., Any]

_WHILE_COLD = (
    ", while kernels were chosen in the first step of this process; it could not run before"
)


class BudgetWatch:
    """Says, once, that a step held more than its budget.

    A look at the allocator before and after a step takes microseconds. Its peak is reset only if
    what ran in between, an evaluation for instance, took more than the step may.
    """

    def __init__(
        self,
        budget: int,
        on_over: Callable[[], None] | None = None,
        leaner: Callable[[int, int], None] | None = None,
        is_cold: bool = False,
    ) -> None:
        """Watch steps.

        Args:
            budget: in bytes.
            on_over: is called if a step held more.
            leaner: lets a leaner plan take over after a step that held so many bytes, or raises a
                BudgetError; it is also given the bytes that were held before the step.
            is_cold: the first step may hold more, whatever the plan; that is only said.
        """
        self._budget = budget
        self._on_over = on_over
        self._leaner = leaner
        self._is_cold = is_cold
        self._ended = False

    def run(self, step: Step, *args: Any, **kwargs: Any) -> Any:
        """Run the step, and look."""
        if self._ended or not tf.executing_eagerly():
            return step(*args, **kwargs)
        if (peak_bytes() or 0) > self._budget:
            reset_peak()
        held = held_bytes() or 0
        result = step(*args, **kwargs)
        self.look(held)
        return result

    def look(self, held: int) -> None:
        """After a step, before which so many bytes were held."""
        peak = peak_bytes() or 0
        is_cold, self._is_cold = self._is_cold, False
        if peak <= self._budget or self._ended:
            return
        what = _over(peak, self._budget)
        if is_cold:
            warn_user("over-budget-at-first", what + _WHILE_COLD)
            return
        self.end()
        if self._on_over is not None:
            self._on_over()
        if self._leaner is None:
            warn_user("over-budget-plan-kept", f"{what}; the plan is kept, and this is said once")
            return
        try:
            self._leaner(peak, held)
        except BudgetError as error:
            warn_user("over-budget-no-leaner-plan", f"{what}, and there is no leaner plan: {error}")
        else:
            warn_user("over-budget-planned-again", f"{what}; planned again")

    def end(self) -> None:
        """Look no more."""
        self._ended = True


class MonitoredStep:
    """Measures the first calls of a step; if one exceeds the budget, a leaner plan takes over.

    Later on a step over the budget is said. A step that is called while a function is being traced,
    as `fit` does, is not monitored here.
    """

    def __init__(
        self,
        step: Step,
        budget: int,
        leaner: Callable[[int], Step],
        on_over: Callable[[], None] | None = None,
        is_cold: bool = False,
    ) -> None:
        """Watch a step.

        Args:
            step: it.
            budget: in bytes.
            leaner: makes a step that takes so many bytes less, or raises a BudgetError.
            on_over: is called if a later step held more.
            is_cold: as for `BudgetWatch`.
        """
        self._step = step
        self._budget = budget
        self._leaner = leaner
        self._left = MONITORED_STEPS
        self._attempts = LEANER_ATTEMPTS
        self._is_cold = is_cold
        self._margin = 0
        self._held = held_bytes() or 0
        self._monitoring = threading.Lock()
        self._later = BudgetWatch(budget, on_over)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the step."""
        # One thread measures at a time: what another one holds meanwhile can't be told apart.
        if (
            not self._left
            or not tf.executing_eagerly()
            or not self._monitoring.acquire(blocking=False)
        ):
            return self._later.run(self._step, *args, **kwargs)
        try:
            self._left -= 1
            held = held_bytes() or 0
            step = functools.partial(self._step, *args, **kwargs)
            result, peak = run_measured(step, device=current_device().name)
            is_cold, self._is_cold = self._is_cold, False
            if peak > self._budget and is_cold:
                warn_user("over-budget-at-first", _over(peak, self._budget) + _WHILE_COLD)
            elif peak > self._budget:
                self._plan_again(peak, held)
        finally:
            self._monitoring.release()
        return result

    def _plan_again(self, peak: int, held: int) -> None:
        # What is held beside the step is counted when a plan is made.
        self._margin += max(0, peak - self._budget - max(0, held - self._held))
        self._held = held
        what = _over(peak, self._budget)
        if not self._attempts:
            warn_user("over-budget-plan-kept", f"{what}, also by this plan; it is kept")
            self._left = 0
            self._later.end()
            return
        self._attempts -= 1
        self._left = MONITORED_STEPS
        try:
            self._step = self._leaner(self._margin)
        except BudgetError as error:
            warn_user("over-budget-no-leaner-plan", f"{what}, and there is no leaner plan: {error}")
            self._left = 0
            self._later.end()
        else:
            warn_user("over-budget-planned-again", f"{what}; planned again")


def _over(peak: int, budget: int) -> str:
    held = format_bytes(peak, budget)
    return f"a step held {held}, more than the budget of {format_bytes(budget, peak)}"
