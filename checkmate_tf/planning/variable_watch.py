"""Whether anybody else writes to the variables of a step while it is planned.

TensorFlow writes into a variable's buffer only if nobody else holds that; else it takes another.
So the value of a variable is held, and if a later read has another address, somebody has written.
"""

from __future__ import annotations

from typing import Any

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.layout import address_of, values_in_place
from checkmate_tf.trace.side_effects import written_captures


class VariableWatch:
    """Holds the values of a step's variables, and sees whether they were written meanwhile.

    Attributes:
        quiet: nobody was seen to write.
    """

    def __init__(self, quiet: bool = True) -> None:
        self.quiet = quiet
        self._held: dict[str, Any] = {}

    def hold(self, concrete: Any) -> None:
        """Watch the variables that `concrete` may write."""
        self._held = {repr(handle): value for handle, value in self._values(concrete)}

    def let_go(self, concrete: Any) -> list[tuple[Any, Any]]:
        """(handle, value) of these variables, which are watched no more: whoever moves them frees
        their buffers. None once somebody has written.
        """
        values, held = self._values(concrete), self._held
        self._held = {}
        for handle, value in values:
            if address_of(held.get(repr(handle), value)) != address_of(value):
                self.quiet = False
        return values if self.quiet else []

    def end(self) -> None:
        """Hold nothing; an error's traceback may keep this object long after planning."""
        self._held = {}

    def _values(self, concrete: Any) -> list[tuple[Any, Any]]:
        # On other devices a variable can't have its value in the host's memory, and stays there.
        if not self.quiet or not current_device().moves_values:
            return []
        values = values_in_place(list(written_captures(concrete)))
        return [each for each in values if each[1].shape.num_elements()]  # others have no address
