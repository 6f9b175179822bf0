"""How large the batches of a step are: as the user said, and as they came."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from checkmate_tf.user_warnings import warn_user

PLANNED_FROM_NOW_ON = "steps are planned for it from now on"
"""What comes of a larger batch, for the user."""


def tell_larger_sizes(shapes: Sequence[Sequence[int]]) -> None:
    """Warn the user that `fit` gives tensors of these shapes, larger than all before."""
    told = f"tensors of the sizes {[*map(list, shapes)]} came, larger than before"
    warn_user("larger-sizes-came", f"{told}; {PLANNED_FROM_NOW_ON}")


class BatchSizes:
    """Batch sizes of one step; a warning says when one is larger than the user said.

    Attributes:
        planned: what steps are planned for; None where the user has not said it.
        largest: of the batches so far; None before the first.
    """

    def __init__(self, said: int | None) -> None:
        """`said` is the largest batch as the user said it."""
        self.planned = said
        self.largest: int | None = None
        self._said = said
        self._lock = threading.Lock()

    def note(self, size: int | None) -> None:
        """See how large a batch is; None where that is not known."""
        if size is None:
            return
        with self._lock:
            self.largest = max(size, self.largest or 0)
            if self.planned is not None and size > self.planned:
                self._plan_for(size, self.planned, f"steps are planned for {size} from now on")

    def forget(self) -> None:
        """No plan was found for what came: what comes next is looked at as if it were the first."""
        with self._lock:
            self.planned, self.largest = self._said, None

    def note_inside(self, size: int, consequence: str) -> bool:
        """Note a batch that came to a step inside a larger function; whether it is too large."""
        with self._lock:
            if size <= (self.planned or self.largest or 0):
                return False
            self._plan_for(size, self._said or self.largest, consequence)
            return True

    def _plan_for(self, size: int, known: int | None, consequence: str) -> None:
        told = f"a batch of {size} came, more than batch_size={known}; {consequence}"
        warn_user("larger-batch-came", told)
        self.planned = size
