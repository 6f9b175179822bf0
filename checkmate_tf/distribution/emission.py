"""Put the step of several replicas together again, each replica in the order of its schedule.

What the replicas do together follows, on each device in its own order, so that all of them meet in
the same exchanges one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from checkmate_tf.distribution.parts import part_of
from checkmate_tf.distribution.split import Split
from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.rewriting.instances import Instances
from checkmate_tf.rewriting.replay import Replay
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
        emission.together()
        return [emission.rest.of(each) for each in concrete.outputs]

    def emit_alone(self, arguments: Sequence[Any]) -> list[Any]:
        """As `emit`, of what every replica computes by itself; returns what it keeps of that."""
        captured = [value for _, value in captures(self.program.concrete)]
        emission = _Emission(self, [*arguments, *captured])
        kept = sorted(self.split.kept, key=lambda each: (each.producer, each.index))
        return [emission.rest.of(_of(self.program, each)) for each in kept]


class _Emission:
    """What has been emitted so far; all replicas by themselves, to begin with."""

    def __init__(self, step: ReplicatedStep, given: Sequence[Any]) -> None:
        program = step.program
        self.program, self.split = program, step.split
        self.emitter = Replay.emitter_of(program)
        for placeholder, value in zip(program.concrete.inputs, given, strict=True):
            if value is not placeholder:  # as the number of an exchange is, until it is made
                self.emitter.provide(placeholder, value)
        first = self._before()
        self.last: list[Any] = []
        for extraction, schedule in zip(step.replicas, step.schedules, strict=True):
            replay = Replay(extraction, schedule, self.emitter, first)
            self._provide(replay.run(), step.split.kept)
            self.last += replay.last
        numbers = step.split.together
        self.rest = Instances(part_of(program, numbers, (), program.outputs), self.emitter)

    def _before(self) -> list[Any]:
        """What no replica does; returns what all that follows has to wait for."""
        numbers = self.split.before
        instances = Instances(part_of(self.program, numbers, (), ()), self.emitter)
        made = [instances.emit(place, []) for place in range(len(numbers))]
        for place, copy in enumerate(made):
            for original, output in zip(
                instances.program.operations[place].outputs, copy.outputs, strict=True
            ):
                self.emitter.provide(original, output)
        return [copy for copy in made if is_stateful(copy)]

    def _provide(self, instances: Instances, kept: frozenset[Tensor]) -> None:
        for tensor in kept:
            original = _of(self.program, tensor)
            if original.op.name in instances.number:
                self.emitter.provide(original, instances.of(original))

    def together(self) -> None:
        """The exchange between the replicas, and what follows it."""
        latest: dict[str, Any] = {}  # per device
        made: dict[int, Any] = {}
        for place, number in enumerate(self.split.together):
            operation = self.program.operations[number]
            before = latest.get(operation.device)
            others = [made[each] for each in self.program.order[number] if each in made]
            copy = self.rest.emit(place, [*(self.last if before is None else [before]), *others])
            made[number] = latest[operation.device] = copy


def _of(program: Program, tensor: Tensor) -> Any:
    """The tensor of the traced step."""
    return program.operations[tensor.producer].outputs[tensor.index]
