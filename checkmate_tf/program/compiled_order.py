"""The order for XLA: in the data.

XLA ignores control edges, computes equal operations once, and computes what is cheap anew for
every reader. So what is computed again waits, by its data, for the newest large value, and what
the schedule keeps longer than the values that it was made of is made to be kept. Recomputations in
a row form a run, which waits for what was there before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from checkmate_tf.devices.device import Device
from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.program.instructions import START, Instruction, Kernel, Tie, Value
from checkmate_tf.program.order import is_large, newest_before, returned
from checkmate_tf.program.ties import (
    can_be_tied,
    computed_in_readers,
    keepable,
    late_gradient,
    operand_to_tie,
)
from checkmate_tf.trace.program import Tensor
from solvers import ComputationGraph, Schedule


def tied(extraction: Extraction, schedule: Schedule, device: Device) -> list[Instruction]:
    """Instructions that XLA runs in the order of `schedule`, as far as it has to."""
    return _Tied(extraction, schedule, device).run()


class _Tied:
    """Instructions so far, and what the next recomputation waits for."""

    def __init__(self, extraction: Extraction, schedule: Schedule, device: Device) -> None:
        in_readers = computed_in_readers(extraction.program, extraction.nodes)
        self.extraction = extraction
        self.program = extraction.program
        self.schedule = schedule
        self.device = device
        self.outlasting = outlasting(extraction.graph, schedule, in_readers)
        self.keepable = keepable(extraction.program)
        self.instructions: list[Instruction] = []
        self.newest: dict[int, int] = {}  # by operation, its last instruction
        self.waits_for: tuple[int, ...] = (START,)
        self.run_of: dict[int, int] = {}  # by operation: the run that computed it again last
        self.runs = 0
        self.recomputes = False
        self.newest_large: Value | None = None
        self.zero_of_run: Value | None = None
        self.first_large: Value | None = None  # of those that are to be kept

    def run(self) -> list[Instruction]:
        for number in self.extraction.prologue:
            self._add_part(None, [number])
        for place, (node, attached) in enumerate(self.extraction.computations(self.schedule)):
            members = self.extraction.nodes[node]
            self._add_part(node, members)
            if place in self.outlasting:
                self._keep(members)
            for number in attached:
                if self.extraction.graph.nodes[node].recomputable:
                    self._add(number, None, newest_before(self.program, number, self.newest))
                else:
                    self._add_part(None, [number])
        return [*self.instructions, returned(self.waits_for)]

    def _add(
        self, number: int, node: int | None, waits_for: tuple[int, ...], ties: Sequence[Tie] = ()
    ) -> None:
        again = number in self.newest
        self.newest[number] = len(self.instructions)
        self.instructions.append(Instruction(number, node, again, waits_for, ties=tuple(ties)))

    def _add_part(self, node: int | None, part: Sequence[int]) -> None:
        again = part[0] in self.newest
        if again and not self.recomputes:
            self.runs += 1
            self.zero_of_run = None
        self.recomputes = again
        for number in part:
            ties = self._ties(number) if again else self._tie_to_gradient(number)
            # The edges order what reads and writes variables.
            self._add(number, node, self.waits_for, ties)
            self.waits_for = (len(self.instructions) - 1,)
            for tensor in self._large(number):
                self.newest_large = tensor, self.newest[number]

    def _ties(self, number: int) -> list[Tie]:
        """How an operation that is computed again is made to wait."""
        reads = (each for each in self.program.reads[number] if is_large(self.extraction, each))
        if any(self.run_of.get(tensor.producer) == self.runs for tensor in reads):
            self.run_of[number] = self.runs
            return self._tie_to_gradient(number)
        operand = operand_to_tie(self.program, self.program.operations[number])
        if operand is None or self.newest_large is None:
            return []
        self.run_of[number] = self.runs
        self.zero_of_run = self.zero_of_run or self.newest_large
        return [Tie(operand, after=self.zero_of_run)]

    def _tie_to_gradient(self, number: int) -> list[Tie]:
        operands = late_gradient(self.program.operations[number], self.device.copies_early)
        return [] if operands is None else [Tie(*operands)]

    def _large(self, number: int) -> list[Tensor]:
        """What an operation makes that is large and of floating-point numbers."""
        outputs: Sequence[Any] = self.program.operations[number].outputs
        return [
            tensor
            for tensor in self.program.produced[number]
            if is_large(self.extraction, tensor) and can_be_tied(outputs[tensor.index])
        ]

    def _keep(self, members: Sequence[int]) -> None:
        """Let what was made now have buffers of its own, where XLA would compute it again."""
        for number in members:
            if number not in self.keepable:
                continue
            made_by = self.newest[number]
            for tensor in self._large(number):
                if self.first_large is None:
                    self.first_large = tensor, made_by
                    self.newest_large = tensor, made_by
                    continue
                self.newest_large = tensor, len(self.instructions)
                self.instructions.append(
                    Instruction(
                        number,
                        waits_for=(),
                        kernel=Kernel.KEEP,
                        ties=(Tie(None, after=self.first_large),),
                        reads=((tensor, made_by),),
                    )
                )


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
