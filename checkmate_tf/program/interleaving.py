"""One of the many orders in which instructions may start and end that run side by side."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from random import Random

from checkmate_tf.program.instructions import START, Instructions

Event = tuple[int, bool]
"""The number of an instruction, and whether it starts or has ended."""

_SPREAD = 1.2
"""Standard deviation of the logarithm of an instruction's time."""


class Interleaving:
    """The orders in which a device may run instructions, so many at once."""

    def __init__(
        self, instructions: Instructions, at_once: int, newest_first: bool = False
    ) -> None:
        """Of all but the return, which waits for all.

        Args:
            instructions: those that run.
            at_once: so many at once.
            newest_first: of those that may run, the one that became ready last is the next one,
                as a thread of TensorFlow's executor goes on with what it made ready; else any is.
        """
        self._at_once = at_once
        self._newest_first = newest_first
        self._count = len(instructions) - 1
        self._waiting: list[int] = []  # by instruction, for how many others
        self._following: list[list[int]] = [[] for _ in range(self._count)]
        for number, each in enumerate(instructions[:-1]):
            before = {by for _, by in each.reads}.union(each.waits_for) - {START}
            self._waiting.append(len(before))
            for one in before:
                self._following[one].append(number)

    def events(self, random: Random) -> Iterator[Event]:
        """What starts and ends, in one such order.

        How long each takes is drawn, and, as threads take work from each other, which of those that
        may run is first.
        """
        if self._at_once == 1:
            yield from ((n, starts) for n in range(self._count) for starts in (True, False))
            return
        missing = self._waiting.copy()
        ready = [number for number, count in enumerate(missing) if not count]
        running: list[tuple[float, int]] = []
        now = 0.0
        while ready or running:
            while ready and len(running) < self._at_once:
                if not self._newest_first:
                    place = random.randrange(len(ready))
                    ready[place], ready[-1] = ready[-1], ready[place]
                number = ready.pop()
                yield number, True
                heappush(running, (now + random.lognormvariate(0, _SPREAD), number))
            now, number = heappop(running)
            yield number, False
            for each in self._following[number]:
                missing[each] -= 1
                if not missing[each]:
                    ready.append(each)
