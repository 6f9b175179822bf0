"""A step that exhausts the device's memory runs again, by a leaner plan; nothing is lost."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import tensorflow as tf

from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.planning.exhausted_message import failed_node
from checkmate_tf.planning.outcome import Outcome
from checkmate_tf.planning.risk import Risk
from checkmate_tf.planning.saved_variables import SavedVariables
from checkmate_tf.planning.settings import LEANER_ATTEMPTS
from checkmate_tf.plans.exhaustion import who_holds
from checkmate_tf.user_warnings import warn_user
from solvers import CheckmateError, format_bytes

Run = Callable[[], Any]
"""A step, with its batch."""

PlanAgain = Callable[[Outcome, int, int], Run]
"""Gives the same step, with the same batch, by a leaner plan than this one, within so many bytes of
which so many are left alone, or raises a CheckmateError."""


class Retries:
    """Runs the steps by one plan, and by those that follow it.

    Only a step that is at risk (`Risk`) is saved before it runs, and a step that others overlap in
    other threads never, for to undo it would undo theirs.
    """

    def __init__(self) -> None:
        """There is no plan yet."""
        self._risk: Risk | None = None
        self._next: Risk | None = None
        self._saved: SavedVariables | None = None  # before the step that is under way
        self._may_save = False  # a plan that is made now is that of the step under way
        self._begun = self._under_way = 0
        self._ahead = 0  # plans that were made before a step could fail
        self._lock = threading.Lock()

    def plan_by(self, planned: Outcome | None, arriving: int = 0) -> None:
        """Steps run by this plan from now on, the one that is under way and being traced first.

        Args:
            planned: the step and its plan; None where it has none.
            arriving: bytes of its arguments, as for `Risk`.
        """
        self._risk = self._next = None if planned is None else Risk(planned, arriving)
        if self._risk is not None and self._may_save:
            self._saved = None  # which may be of other variables
            self._saved = self._risk.saved()

    def plan_next_by(self, planned: Outcome, arriving: int) -> None:
        """As `plan_by`, from the step on that follows the one under way."""
        self._next = Risk(planned, arriving)

    def is_at_risk(self, held: int) -> bool:
        """Whether the next step may fail, before which so many bytes are held."""
        return self._risk is not None and self._risk.is_at(held)

    def may_fail(self, held: int) -> bool:
        """Whether it may also if no more is held than before, but what is free in other pieces."""
        risk = self._risk
        return risk is not None and risk.can_be_saved and not risk.fits_by_far(held)

    def run(
        self,
        step: Run,
        plan_again: PlanAgain | None,
        held: int | None = None,
        at_risk: bool = False,
        plans_ahead: bool = True,
    ) -> Any:
        """Run a step, before which so many bytes are held.

        Args:
            step: it.
            plan_again: plans it anew, and can be asked for the same batch; None where that is gone.
            held: bytes.
            at_risk: whatever is held.
            plans_ahead: it may be planned anew before it runs; not where its plan may be another.
        """
        held = (held_bytes() or 0) if held is None else held
        with self._lock:
            self._begun += 1
            mine, is_alone = self._begun, not self._under_way
            self._under_way += 1
        why = ""
        try:
            if is_alone and plan_again is not None:
                self._may_save = True
                step, why = self._saved_first(step, plan_again, held, at_risk, plans_ahead)
            try:
                result = step()
            except tf.errors.ResourceExhaustedError as error:
                saved = self._saved if is_alone and mine == self._begun else None
                if saved is None or plan_again is None:
                    self._tell_and_raise(error, held)
                result = self._again(error, held, saved, plan_again, why)
            if self._risk is not None:
                self._risk.succeeded(held)
            return result
        finally:
            with self._lock:
                self._under_way -= 1
            if is_alone:
                self._saved, self._may_save = None, False
                self._risk = self._next

    def _saved_first(
        self, step: Run, plan_again: PlanAgain, held: int, at_risk: bool, plans_ahead: bool
    ) -> tuple[Run, str]:
        """The step, after it was saved if it is at risk; by a leaner plan if it would surely fail.

        To find that out by the failure would take ten seconds on a GPU. Where there is no leaner
        plan, why not is returned besides, and the step is tried as it is.
        """
        risk, why = self._risk, ""
        if risk is None or not (at_risk or risk.is_at(held)):
            return step, ""
        limit = risk.limit
        is_too_much = limit is not None and risk.has_run and risk.expected(held) > limit
        if is_too_much and plans_ahead and self._ahead < LEANER_ATTEMPTS:
            self._ahead += 1
            try:
                step = plan_again(risk.planned, risk.budget(), risk.margin(held))
            except CheckmateError as error:
                if getattr(error, "least", None):  # else a plan that is leaner by more may be found
                    why = str(error)
            else:  # by which it is saved
                warn_user(
                    "more-held-planned-again",
                    f"{format_bytes(held)} are held before a step, beside which it would exhaust "
                    "the device's memory; planned again",
                )
                return step, ""
        self._saved = risk.saved()
        return step, why

    def _again(
        self, error: Any, held: int, saved: SavedVariables, plan_again: PlanAgain, why: str
    ) -> Any:
        """What the step returns by a leaner plan, after its variables were put back.

        Where that one fails as well, it runs by the next, until none is leaner.
        """
        self._may_save = False  # a second time
        while True:
            risk = self._risk
            assert risk is not None
            traceback.clear_frames(error.__traceback__)  # which hold tensors of the failed step
            saved.put_back(given_away=risk.is_compiled)
            lost = risk.lost(held)
            if lost:
                why = (
                    f"XLA has kept {format_bytes(lost)} that the step had taken before it failed; "
                    "begin again in another process, with a smaller batch or a smaller budget"
                )
            if why:
                self._tell_and_raise(error, held, why)
            try:
                step = plan_again(risk.planned, risk.budget(), risk.margin(held, error))
            except (CheckmateError, tf.errors.ResourceExhaustedError) as failed:
                self._tell_and_raise(error, held, str(failed))
            warn_user(
                "exhausted-planned-again",
                "a step exhausted the device's memory; its variables are as before it, and it runs "
                "again by a leaner plan",
            )
            try:
                return step()
            except CheckmateError as failed:  # of a trace, before anything ran
                self._tell_and_raise(error, held, str(failed))
            except tf.errors.ResourceExhaustedError as failed:
                error = failed

    def _tell_and_raise(self, error: Any, held: int, why: str = "") -> NoReturn:
        """Raise the error as it is, with a note of who holds the memory."""
        risk = self._risk
        if risk is not None:
            node = failed_node(error.message, risk.planned.extracted)
            note = who_holds(risk.planned.plan, held, risk.limit, node)
            note = f"no leaner plan: {why}\n{note}" if why else note
            if risk.is_compiled and not why:
                note += (
                    "\nXLA had taken over the memory of the step's variables, so that their values "
                    "are lost: begin again from a checkpoint, in another process"
                )
            warn_user("memory-exhausted", note)
            if hasattr(error, "add_note"):  # from Python 3.11 on
                error.add_note(note)
        raise error from None


class SafeStep:
    """A step that is called by itself, and runs again where it has to."""

    def __init__(
        self,
        step: Callable[..., Any],
        retries: Retries,
        plan_again: Callable[[Outcome, int, int], Callable[..., Any]],
    ) -> None:
        """Prepare a step.

        Args:
            step: it.
            retries: for its plan.
            plan_again: as `PlanAgain`, of the step without its arguments.
        """
        self._step = step
        self._retries = retries
        self._plan_again = plan_again

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the step."""
        if not tf.executing_eagerly():
            return self._step(*args, **kwargs)

        def again(planned: Outcome, budget: int, margin: int) -> Run:
            self._step = self._plan_again(planned, budget, margin)
            return partial(self._step, *args, **kwargs)

        return self._retries.run(partial(self._step, *args, **kwargs), again)
