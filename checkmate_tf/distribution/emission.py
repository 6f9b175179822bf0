"""Put the step of several replicas together again, each replica in the order of its schedule.

What the replicas do together follows, on each device in its own order, so that all of them meet in
the same exchanges one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from checkmate_tf.devices.current import current_device
from checkmate_tf.distribution.parts import part_of
from checkmate_tf.distribution.split import Split
from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.program.emit import Emission, emitter_for
from checkmate_tf.program.in_place import InPlace
from checkmate_tf.program.instructions import START, Instruction, Instructions
from checkmate_tf.program.lower import lower
from checkmate_tf.program.order import kernel_of, returned
from checkmate_tf.program.reads import with_reads
from checkmate_tf.trace.inputs import captures
from checkmate_tf.trace.operations import is_stateful
from checkmate_tf.trace.program import Program, Tensor
from solvers import Schedule


@dataclass(frozen=True)
class ReplicatedStep:
    """A step that several replicas run, and the schedule of each.

    Attributes:
        program: of the whole step.
        split: of the program.
        replicas: per replica, what it computes by itself, extracted.
        schedules: one for each of them.
    """

    program: Program
    split: Split
    replicas: tuple[Extraction, ...]
    schedules: tuple[Schedule, ...]

    def emit(self, arguments: Sequence[Any]) -> list[Any]:
        """Create the operations of the whole step in the default graph.

        Args:
            arguments: one tensor for each flat argument of the traced step.

        Returns:
            One tensor for each flat output of the traced step.
        """
        concrete = self.program.concrete
        emission = _Emission(self, [*arguments, *concrete.captured_inputs])
        rest = emission.together()
        return [rest.of(each) for each in concrete.outputs]

    def emit_alone(self, arguments: Sequence[Any]) -> list[Any]:
        """As `emit`, of what every replica computes by itself; returns what it keeps of that."""
        captured = [value for _, value in captures(self.program.concrete)]
        emission = _Emission(self, [*arguments, *captured])
        kept = sorted(self.split.kept, key=lambda each: (each.producer, each.index))
        return [emission.emitter.provided(_of(self.program, each)) for each in kept]


class _Emission:
    """What has been emitted so far; all replicas by themselves, to begin with."""

    def __init__(self, step: ReplicatedStep, given: Sequence[Any]) -> None:
        program = step.program
        self.program, self.split = program, step.split
        device = current_device()
        self.emitter = emitter_for(program, device)
        for placeholder, value in zip(program.concrete.inputs, given, strict=True):
            if value is not placeholder:  # as the number of an exchange is, until it is made
                self.emitter.provide(placeholder, value)
        first = self._before()
        self.last: list[Any] = []
        for extraction, schedule in zip(step.replicas, step.schedules, strict=True):
            replica = Emission(extraction.program, self.emitter, first)
            replica.run(lower(extraction, schedule, device))
            self._provide(replica)
            self.last += replica.last

    def _before(self) -> list[Any]:
        """What no replica does; returns what all that follows has to wait for."""
        numbers = self.split.before
        emission = Emission(part_of(self.program, numbers, (), ()), self.emitter)
        emission.run(_listed(emission.program, [() for _ in numbers]))
        made = [emission.copies[place] for place in range(len(numbers))]
        for operation, copy in zip(emission.program.operations, made, strict=True):
            for original, output in zip(operation.outputs, copy.outputs, strict=True):
                self.emitter.provide(original, output)
        return [copy for copy in made if is_stateful(copy)]

    def _provide(self, replica: Emission) -> None:
        for tensor in self.split.kept:
            original = _of(self.program, tensor)
            if original.op.name in replica.number:
                self.emitter.provide(original, replica.of(original))

    def together(self) -> Emission:
        """The exchange between the replicas, and what follows it."""
        numbers = self.split.together
        latest: dict[str, int] = {}  # per device
        made: dict[int, int] = {}
        waits_for = []
        for place, number in enumerate(numbers):
            device = self.program.operations[number].device
            before = latest.get(device, START)
            others = [made[each] for each in self.program.order[number] if each in made]
            waits_for.append((before, *others))
            made[number] = latest[device] = place
        part = part_of(self.program, numbers, (), self.program.outputs)
        emission = Emission(part, self.emitter, self.last)
        emission.run(_listed(part, waits_for))
        return emission


def _listed(program: Program, waits_for: Sequence[tuple[int, ...]]) -> Instructions:
    """All operations of a program, each after those that it waits for."""
    listed = [
        Instruction(number, waits_for=waits, **kernel_of(program, number, InPlace()))
        for number, waits in enumerate(waits_for)
    ]
    return with_reads(program, [*listed, returned(())])


def _of(program: Program, tensor: Tensor) -> Any:
    """The tensor of the traced step."""
    return program.operations[tensor.producer].outputs[tensor.index]
