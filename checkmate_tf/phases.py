"""What the time of planning goes into: trace, extract, solve, trials, emit.

Where XLA compiles the step, plans are compiled in place of trials. Functions deep in the package
say what they do with `phase`; a `stopwatch` around all of it adds up the seconds. A phase
inside another one counts for itself alone.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

ORDER = ("trace", "extract", "solve", "trials", "compile", "emit")
"""The phases, in the order in which they begin."""

Show = Callable[[str, Mapping[str, float]], None]
"""Is told which phase goes on, and the seconds of each so far."""


class Stopwatch:
    """Seconds by phase.

    Attributes:
        seconds: of each phase so far.
    """

    def __init__(self, known: Mapping[str, float] | None = None, show: Show | None = None) -> None:
        """As for `stopwatch`."""
        self.seconds = defaultdict(float, known or {})
        self._show = show
        self._running: list[str] = []
        self._since = 0.0

    def turn(self, begins: str = "") -> None:
        """Another phase `begins`, and the one around it rests; or else the innermost one ends."""
        now = time.perf_counter()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now
        if begins:
            self._running.append(begins)
        else:
            self._running.pop()
        if self._show is not None and self._running:
            self._show(self._running[-1], self.seconds)


_CURRENT: ContextVar[Stopwatch | None] = ContextVar("stopwatch", default=None)


@contextmanager
def stopwatch(
    known: Mapping[str, float] | None = None, show: Show | None = None
) -> Iterator[Stopwatch]:
    """Adds up the seconds of the phases inside, to those that are `known`.

    `show` is told when another phase begins or goes on.

    Example:
        >>> with stopwatch({"trace": 2.0}) as watch:
        ...     with phase("solve"), phase("trials"):
        ...         pass
        >>> sorted(watch.seconds), watch.seconds["trace"]
        (['solve', 'trace', 'trials'], 2.0)
    """
    watch = Stopwatch(known, show)
    token = _CURRENT.set(watch)
    try:
        yield watch
    finally:
        _CURRENT.reset(token)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """What runs inside is `name`, a phase; without a stopwatch around it nothing is counted."""
    watch = _CURRENT.get() or Stopwatch()
    watch.turn(name)
    try:
        yield
    finally:
        watch.turn()


def seconds_so_far() -> dict[str, float]:
    """Of each phase that has ended or rests, by the stopwatch around this; nothing without one."""
    watch = _CURRENT.get()
    return {} if watch is None else dict(watch.seconds)


def in_words(seconds: Mapping[str, float]) -> str:
    """All seconds, and those of each phase, as a person reads them; "" of none.

    Example:
        >>> in_words({"solve": 12.2, "trace": 1.04})
        '13 s: trace 1.0, solve 12'
    """
    names = sorted(seconds, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    parts = ", ".join(f"{name} {number_of(seconds[name])}" for name in names)
    return f"{number_of(sum(seconds.values()))} s: {parts}" if names else ""


def number_of(seconds: float) -> str:
    """Seconds, with a decimal where they are few."""
    return f"{seconds:.1f}" if seconds < 9.95 else f"{seconds:.0f}"
