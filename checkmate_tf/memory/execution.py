"""One execution of a schedule, buffer by buffer."""

from __future__ import annotations

from collections import defaultdict

from checkmate_tf.graph.execution import Execution, Executor
from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.graph.one_order import one_order
from checkmate_tf.trace.repeatability import has_one_order
from solvers import Schedule


def operations_in_order(extraction: Extraction, schedule: Schedule) -> list[int]:
    """Numbers of the operations that `schedule` runs, recomputations included.

    Those that one kernel does (`trace.repeatability`) have the number of the last of them.

    Where they have no one order, what is attached to a node that may run again waits for nothing
    but its inputs (`rewriting.replay`), so it runs as soon as they are there: a product of an
    optimizer's slot, for instance, before all else. Where such small buffers lie decides how free
    pieces lie.
    """
    if has_one_order():
        return one_order(extraction, schedule).numbers
    order = _Order(extraction, schedule)
    for number in extraction.prologue:
        order.run(number)
    for node, attached in extraction.computations(schedule):
        for number in (*extraction.nodes[node], *attached):
            order.run(number)
    return order.numbers


class _Order:
    """Operations in the order in which they run; those that wait for no others come early."""

    def __init__(self, extraction: Extraction, schedule: Schedule) -> None:
        self.numbers: list[int] = []
        self._early = {
            number
            for node, attached in extraction.computations(schedule)
            if extraction.graph.nodes[node].recomputable
            for number in attached
        }
        self._missing = {number: set(extraction.program.before(number)) for number in self._early}
        self._waiting: dict[int, list[int]] = defaultdict(list)  # for an operation
        for number, before in self._missing.items():
            for each in before:
                self._waiting[each].append(number)
        for number in sorted(self._early):
            if not self._missing[number]:
                self._append(number)

    def run(self, number: int) -> None:
        """It is its turn, unless it ran early."""
        if number not in self._early:
            self._append(number)

    def _append(self, number: int) -> None:
        pending = [number]
        while pending:
            self.numbers.append(pending[0])
            for each in self._waiting.pop(pending.pop(0), ()):
                self._missing[each].discard(self.numbers[-1])
                if not self._missing[each]:
                    pending.append(each)


def execution(extraction: Extraction, schedule: Schedule) -> Execution:
    """Execute `schedule` on paper, one operation after the other.

    What runs beside others (`graph.one_order`) is taken to end at once.
    """
    return Executor(extraction, operations_in_order(extraction, schedule)).run()
