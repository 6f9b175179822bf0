"""Note Ctrl-C: a solver catches it to return its best plan so far, so it is raised later."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Interrupts:
    """Whether Ctrl-C was pressed.

    Attributes:
        noted: it was.
    """

    noted: bool = False

    def pass_on(self) -> None:
        """Raise `KeyboardInterrupt` if Ctrl-C was pressed, also where somebody has caught it."""
        if self.noted:
            raise KeyboardInterrupt


@contextmanager
def noted_interrupts() -> Iterator[Interrupts]:
    """Notes Ctrl-C, besides what it does as always; it comes out as `KeyboardInterrupt`.

    In another thread than the main one, which no signal reaches, nothing is ever noted.

    Example:
        >>> import signal
        >>> with noted_interrupts() as interrupts:
        ...     try:
        ...         signal.raise_signal(signal.SIGINT)
        ...     except KeyboardInterrupt:
        ...         pass
        >>> interrupts.noted
        True
    """
    interrupts = Interrupts()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    # A shell lets what it runs in the background ignore Ctrl-C; what comes all the same is meant.
    as_always = before if callable(before) else signal.default_int_handler

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupts.noted = True
        as_always(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupts
    except Exception as error:
        if not interrupts.noted:
            raise
        # Compiled code that is interrupted may end in an error of its own, a SystemError even.
        raise KeyboardInterrupt from error
    finally:
        signal.signal(signal.SIGINT, before)
