"""Emit a schedule for XLA: as for the executor, but with the order in the data.

XLA ignores control edges, computes equal operations once, and computes what is cheap anew for
every reader. So what is computed again waits, by its data, for the newest large value, and what
the schedule keeps longer than the values that it was made of is made to be kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

import tensorflow as tf

from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.rewriting.instances import Instances
from checkmate_tf.rewriting.max_pool_gradient import EmitterForXLA
from checkmate_tf.rewriting.replay import Replay
from checkmate_tf.rewriting.ties import (
    can_be_tied,
    computed_in_readers,
    keepable,
    kept,
    late_gradient,
    operand_to_tie,
    tied,
    zero_after,
)
from checkmate_tf.trace.emission import Emitter
from checkmate_tf.trace.program import Program
from profiles.devices import default_device
from solvers import ComputationGraph, Schedule


class TiedReplay(Replay):
    """As `Replay`; recomputations in a row form a run, which waits for what was there before it."""

    @classmethod
    def is_in_turn(cls) -> bool:
        """See `Replay`; XLA orders operations, and gives variables their buffers, by itself."""
        return False

    @classmethod
    def emitter_of(cls, program: Program) -> Emitter:
        """See `Replay`; functions are left alone, for XLA has an order of its own."""
        return EmitterForXLA(program.concrete.graph, tf.compat.v1.get_default_graph())

    def __init__(
        self,
        extraction: Extraction,
        schedule: Schedule,
        emitter: Emitter,
        waits_for: Sequence[Any] = (),
    ) -> None:
        """See `Replay`."""
        super().__init__(extraction, schedule, emitter, waits_for)
        in_readers = computed_in_readers(extraction.program, extraction.nodes)
        self.outlasting = outlasting(extraction.graph, schedule, in_readers)
        self.keepable = keepable(extraction.program)
        self.on_cpu = default_device().startswith("CPU")
        self.computed: set[int] = set()  # operations, at least once
        self.run_of: dict[int, int] = {}  # by operation: the run that computed it again last
        self.runs = 0
        self.recomputes = False
        self.newest_large: Any = None
        self.zero: Any = None  # of the run that is under way
        self.early_zero: Any = None  # of the first large value

    def run(self) -> Instances:
        """Create them all; returns what stands for the tensors of the step afterwards."""
        for number in self.extraction.prologue:
            self._emit_part([number])
        for place, (node, attached) in enumerate(self.extraction.computations(self.schedule)):
            members = self.extraction.nodes[node]
            self._emit_part(members)
            if place in self.outlasting:
                self._keep(members)
            self._emit_attached(node, attached)
        return self.instances

    def _emit_part(self, part: Sequence[int]) -> None:
        again = part[0] in self.computed
        if again and not self.recomputes:
            self.runs += 1
            self.zero = None
        self.recomputes = again
        for number in part:
            ties = self._ties(number) if again else self._tie_to_gradient(number)
            # The edges order what reads and writes variables.
            self.waits_for = [self.instances.emit(number, self.waits_for, ties)]
            self.computed.add(number)
            self._note_large(number)

    def _ties(self, number: int) -> dict[int, Any]:
        """What stands for an input of an operation that is computed again, so that it waits."""
        reads = filter(self._is_large, self.program.reads[number])
        if any(self.run_of.get(tensor.producer) == self.runs for tensor in reads):
            self.run_of[number] = self.runs
            return self._tie_to_gradient(number)
        operand = operand_to_tie(self.program, self.program.operations[number])
        if operand is None or self.newest_large is None:
            return {}
        self.run_of[number] = self.runs
        if self.zero is None:
            self.zero = zero_after(self.newest_large)
        now = self.instances.of(operand)
        return {id(now): tied(now, self.zero)}

    def _tie_to_gradient(self, number: int) -> dict[int, Any]:
        operands = late_gradient(self.program.operations[number], self.on_cpu)
        if operands is None:
            return {}
        early, late = map(self.instances.of, operands)
        return {id(early): tied(early, zero_after(late))}

    def _note_large(self, number: int) -> None:
        for made in self._large(number).values():
            self.newest_large = made

    def _large(self, number: int) -> dict[tuple[int, int], Any]:
        """What an operation has made now, if it is large and of floating-point numbers."""
        keys = [(t.producer, t.index) for t in self.program.produced[number] if self._is_large(t)]
        newest = self.instances.newest
        return {key: newest[key] for key in keys if can_be_tied(newest[key])}

    def _keep(self, members: Sequence[int]) -> None:
        """Let what was made now have buffers of its own, where XLA would compute it again."""
        for number in members:
            if number not in self.keepable:
                continue
            for key, made in self._large(number).items():
                if self.early_zero is None:
                    self.early_zero = zero_after(made)
                    continue
                self.instances.newest[key] = kept(made, self.early_zero)
            self._note_large(number)


def outlasting(
    graph: ComputationGraph, schedule: Schedule, in_readers: Collection[int] = ()
) -> set[int]:
    """Places in `schedule` whose value is read when what it was made of has gone.

    Where XLA computes it anew for such a reader, what it is made of stays as long.

    Args:
        graph: of the step.
        schedule: for it.
        in_readers: nodes that XLA can compute in the loops of what reads them. Such a value can be
            had as long as its own sources are there.

    Example:
        >>> from solvers import ComputationGraph, Node, Schedule
        >>> chain = ComputationGraph(
        ...     (Node("a", 1, 1), Node("b", 1, 1, dependencies=(0,)),
        ...      Node("c", 1, 1, dependencies=(1,)), Node("d", 1, 1, dependencies=(1, 2))))
        >>> outlasting(chain, Schedule(range(4)))
        {1}
    """
    newest: dict[int, int] = {}
    made_of: list[list[int]] = []
    last_read: dict[int, int] = defaultdict(int)
    for place, node in enumerate(schedule.steps):
        made_of.append([newest[each] for each in graph.nodes[node].dependencies])
        last_read.update(dict.fromkeys(made_of[place], place))
        newest[node] = place
    found = set()
    there_until: list[int] = []
    for place, (node, sources) in enumerate(zip(schedule.steps, made_of, strict=True)):
        until = min((there_until[each] for each in sources), default=len(made_of))
        if last_read[place] > max(until, place + 1):
            found.add(place)
        has_own_buffer = place in found or node not in in_readers
        there_until.append(last_read[place] if has_own_buffer else until)
    return found
