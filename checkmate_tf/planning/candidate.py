"""A plan that may be the answer to a search, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from checkmate_tf.planning.settings import AS_LEAN
from checkmate_tf.plans.line import extra_in_words
from checkmate_tf.plans.plan import Plan
from checkmate_tf.program.forecast import Forecast
from solvers import format_bytes


@dataclass(frozen=True)
class Candidate:
    """A plan that may be the answer.

    Attributes:
        forecast: of its peaks.
        scatter: see `TrialRun`; None also without a trial run.
        exhausted: its trial run ran out of memory.
        preliminary: the first one, which is not tried: it uses too little of the budget, or so much
            that it may well hold more.
        roomy: it uses so little of the budget that one more, faster plan is worth a try.
        function: what its trial run ran.
    """

    plan: Plan
    forecast: Forecast
    scatter: int | None = None
    exhausted: bool = False
    preliminary: bool = False
    roomy: bool = False
    function: Callable[..., Any] | None = None

    @property
    def is_too_large(self) -> bool:
        """Whether it exhausts the device's memory: in its trial run, or else by its forecast."""
        return self.exhausted or (self.forecast.exhausts and self.plan.measured_peak is None)

    @property
    def was_tried(self) -> bool:
        """Whether it ran for trial, to the end or not."""
        return self.exhausted or self.plan.measured_peak is not None

    def in_words(self, expected: int) -> str:
        """What was seen of it, and the bytes that it is `expected` to rarely hold more than."""
        plan = self.plan
        facts = [f"{format_bytes(self.forecast.highest_of_ten)} forecast"]
        if self.exhausted:
            facts.append("out of memory in its trial run")
        elif plan.measured_peak is not None:
            facts.append(f"{format_bytes(plan.measured_peak)} in its trial run")
        elif self.forecast.exhausts:
            facts.append("too large for what may be free in one piece")
        facts.append(extra_in_words(plan))
        if self.preliminary:
            facts.append("not tried, but the next one is corrected by it")
        if self.roomy:
            facts.append("leaves room for a faster one")
        need = f"may need {format_bytes(expected, plan.budget)} of "
        need += format_bytes(plan.budget, expected)
        return ", ".join([f"a plan: {facts[0]}", *facts[1:], need])


def fastest_of_the_leanest(
    candidates: Sequence[Candidate], bytes_of: Callable[[Candidate], int]
) -> Candidate:
    """Of those that need about as little as the leanest, the one of the least extra time.

    `bytes_of` says what a candidate needs.
    """
    leanest = min(candidates, key=lambda each: (each.is_too_large, bytes_of(each)))
    alike = [
        each
        for each in candidates
        if each.is_too_large == leanest.is_too_large
        and bytes_of(each) <= AS_LEAN * bytes_of(leanest)
    ]
    return min(alike, key=lambda each: each.plan.overhead)
