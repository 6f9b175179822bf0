"""Whether the next step by a plan may exhaust the device's memory, by what is held before it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.planning.outcome import Outcome
from checkmate_tf.planning.saved_variables import SavedVariables, can_be_saved, saved_variables
from checkmate_tf.planning.settings import (
    A_LITTLE_MORE,
    LESS_AFTER_EXHAUSTION,
    LESS_OF_COMPILED,
    ROOM_FOR_UNCHANGED,
    STEPS_AT_RISK,
)
from profiles.exhausted import bytes_asked_for


class Risk:
    """Of the steps by one plan.

    Attributes:
        planned: the step and its plan.
    """

    def __init__(self, planned: Outcome, arriving: int) -> None:
        """No step has run by it.

        Args:
            planned: the step and its plan.
            arriving: bytes of its arguments that may not be on the device yet when it is asked for.
        """
        self.planned = planned
        self._arriving = arriving
        self._most: int | None = None  # bytes held before or after steps that succeeded
        self._succeeded = 0

    @cached_property
    def can_be_saved(self) -> bool:
        """Whether a step that fails can be undone, and is an error of TensorFlow's at all."""
        can_fail = held_bytes() is not None and current_device().raises_when_full()
        if not can_fail or self.planned.replicated is not None:
            return False
        return can_be_saved(self.planned.extracted.program.concrete)

    def is_at(self, held: int) -> bool:
        """Whether a step may fail before which so many bytes are held.

        That is the first one, and each before which more is held than when one succeeded: a little
        more, as small buffers that come and go, only where the step does not fit by far. Where it
        does not, some more are: what is free comes to lie in other pieces.
        """
        if not self.can_be_saved:
            return False
        if self._most is None:
            return True
        if self._succeeded < STEPS_AT_RISK and not self.fits_by_far(held):
            return True
        if held <= self._most:
            return False
        limit = self.limit
        if limit is None or held - self._most > A_LITTLE_MORE * limit or not self.fits_by_far(held):
            return True
        self._most = held
        return False

    def fits_by_far(self, held: int) -> bool:
        """Whether a step fits even if it adds twice as much as it is expected to."""
        limit = self.limit
        return limit is not None and held + ROOM_FOR_UNCHANGED * self._adds <= limit

    @property
    def has_run(self) -> bool:
        """Whether a step by this plan has succeeded."""
        return self._most is not None

    def succeeded(self, held: int) -> None:
        """A step has run, before which so many bytes were held."""
        self._succeeded += 1
        if self._most is None or held > self._most:
            self._most = max(held, held_bytes() or 0)

    def saved(self) -> SavedVariables | None:
        """The step's variables, before it runs; None where they can't be saved."""
        if not self.can_be_saved:
            return None
        return saved_variables(self.planned.extracted.program.concrete)

    @property
    def limit(self) -> int | None:
        """Bytes that the device can hold in all."""
        room = current_device().room()
        return None if room is None else room.bytes

    def expected(self, held: int) -> int:
        """Bytes that a step is expected to hold at most before which so many are held."""
        return held + self._arriving + self._adds

    @property
    def _adds(self) -> int:
        """Bytes that a step adds to what is resident."""
        plan = self.planned.plan
        resident = plan.graph.fixed_bytes if plan.origin is None else plan.origin.resident
        return plan.peak - resident

    @property
    def is_compiled(self) -> bool:
        """XLA compiles the step."""
        return self.planned.plan.compiled_peak is not None

    def lost(self, held: int) -> int:
        """Bytes that a compiled step has kept as it failed, before which so many were held.

        XLA gives back none of its buffers where the last of them can't be had.
        """
        more = (held_bytes() or 0) - held
        return more if self.is_compiled and more > self._adds // 2 else 0

    def budget(self) -> int:
        """Bytes that the next plan may take: what the user said, or the device can hold now."""
        plan = self.planned.plan
        return (self.limit if plan.budget_from else None) or plan.budget

    def margin(self, held: int, failed: Any = None) -> int:
        """Bytes of this budget that the next plan has to leave alone.

        Args:
            held: bytes before the step.
            failed: the error of a step by this plan; None where none has run since so much is held.
        """
        budget = self.budget()
        most = min(budget, self.limit or budget, self.expected(held))
        if failed is not None:
            asked = bytes_asked_for(failed.message)
            if self.is_compiled:
                asked = int(LESS_OF_COMPILED * self._adds)
            most -= max(asked, int(LESS_AFTER_EXHAUSTION * budget))
        return max(0, budget - most)
