"""The newest computation of every tensor of a traced step, in the graph that is being built."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from checkmate_tf.trace.depth_first import finish, tensor_key
from checkmate_tf.trace.emission import Emitter
from checkmate_tf.trace.momentum_updates import KERNEL
from checkmate_tf.trace.operations import (
    NO_GRADIENTS,
    PASS_THROUGH,
    READS,
    SOURCES,
    VIEWS,
    under_views,
)
from checkmate_tf.trace.program import Program, Tensor
from checkmate_tf.trace.repeatability import NO_UPDATES, InPlaceUpdates

_LEFT_OUT = PASS_THROUGH - NO_GRADIENTS
"""Views that are not emitted: their input stands for them. Those that stop gradients are, for the
function around the step may be differentiated."""

_NO_ALIASES: Mapping[int, Any] = {}


class Instances:
    """Computes operations of a program, any number of times, each on the newest of its inputs."""

    def __init__(
        self,
        program: Program,
        emitter: Emitter,
        tiny: Collection[Tensor] = (),
        in_place: Collection[int] = (),
        updates: InPlaceUpdates = NO_UPDATES,
    ) -> None:
        """What is not of the program must be provided by the emitter.

        Args:
            program: the operations that are to be computed.
            emitter: into the graph that is being built.
            tiny: tensors that stay from their first computation on.
            in_place: numbers of writes that go into the variable's own buffer.
            updates: what one kernel does.
        """
        self.updates = updates
        self.in_place = in_place
        self.read_late = {under_views(program.operations[n].inputs[0]).name for n in in_place}
        self.waits_for: Sequence[Any] = ()  # of what is being emitted
        self.program = program
        self.emitter = emitter
        self.number = {op.name: place for place, op in enumerate(program.operations)}
        self.newest: dict[tuple[int, int], Any] = {}
        self.copies: dict[int, Any] = {}  # by operation number: what was emitted for it last
        self.views: dict[tuple[str, int, tuple[int, ...]], tuple[Any, list[Any]]] = {}
        self.tiny = {(tensor.producer, tensor.index) for tensor in tiny}

    def emit(
        self, number: int, control_inputs: Sequence[Any], alias: Mapping[int, Any] = _NO_ALIASES
    ) -> Any:
        """Compute an operation once more, after `control_inputs`; returns the copy.

        Args:
            number: of the operation.
            control_inputs: operations of the graph that is being built.
            alias: what to take instead of an input, by its id.
        """
        operation = self.program.operations[number]
        update = self.updates.kernels.get(number)
        self.waits_for = control_inputs
        inputs = [self.of(each) for each in (update or operation).inputs]
        self.waits_for = ()
        inputs = [alias.get(id(each), each) for each in inputs]
        if update is not None:
            copy = self.emitter.create_in_place_of(
                operation, KERNEL, inputs, update.attributes, control_inputs
            )
        elif self.emitter.kernel_sums and operation.type == "AddN" and len(inputs) > 2:
            inputs = [inputs[place] for place in self.program.sums.order(operation)]
            copy = self.emitter.create_sum(operation, inputs, control_inputs)
        elif number in self.in_place:
            copy = self.emitter.create_write_in_place(operation, inputs, control_inputs)
        else:
            copy = self.emitter.create(operation, inputs, control_inputs)
        self.copies[number] = copy
        for index, output in enumerate(copy.outputs):
            key = (number, index)
            # A tiny tensor stays from its first computation on.
            if key not in self.tiny or key not in self.newest:
                self.newest[key] = output
        return copy

    def before(self, number: int) -> list[Any]:
        """The newest copies of what an operation must run after, whatever it reads."""
        return self._copies_of(self.program.order[number])

    def _copies_of(self, numbers: Iterable[int]) -> list[Any]:
        return [self.copies[each] for each in sorted(numbers) if each in self.copies]

    def of(self, tensor: Any) -> Any:
        """The tensor that stands for `tensor` now."""
        there = self._there(tensor)
        if there is not None:
            return there
        now: dict[tuple[str, int], Any] = {}

        def make(each: Any) -> None:
            now[tensor_key(each)] = self._make(
                each, [now[tensor_key(n)] for n in self._needs(each)]
            )

        finish(tensor, now, tensor_key, self._needs, make)
        return now[tensor_key(tensor)]

    def _needs(self, tensor: Any) -> list[Any]:
        """What must be there before something can stand for `tensor`."""
        if self._there(tensor) is not None:
            return []
        operation = tensor.op
        if operation.name in self.program.constants:
            return list(self._equal_constant(tensor).op.inputs)
        if operation.type in _LEFT_OUT:
            return [operation.inputs[tensor.value_index]]
        return list(operation.inputs)

    def _make(self, tensor: Any, inputs: list[Any]) -> Any:
        """What stands for `tensor`, where `inputs` stand for what it needs."""
        there = self._there(tensor)
        if there is not None:
            return there
        operation = tensor.op
        if operation.name in self.program.constants:
            tensor = self._equal_constant(tensor)
        if operation.name in self.program.constants or operation.type in SOURCES:
            first = self._before_read(operation) if operation.type in READS else ()
            self.emitter.create_shared(tensor.op, inputs, first)
            return self.emitter.provided(tensor)
        assert operation.type in VIEWS, f"nothing stands for {tensor}"
        if operation.type in _LEFT_OUT:
            return inputs[0]
        key = (operation.name, tensor.value_index, tuple(id(each) for each in inputs))
        if key not in self.views:
            copy = self.emitter.create(operation, inputs)
            for index, output in enumerate(copy.outputs):
                # The inputs are held, so that no other tensor can get the id of one of them.
                self.views[operation.name, index, key[2]] = output, inputs
        return self.views[key][0]

    def _before_read(self, operation: Any) -> list[Any]:
        """What a variable is read after, besides its writes."""
        first = self._copies_of(self.program.late_reads.get(operation.name, ()))
        if under_views(operation.inputs[0]).name in self.read_late:
            # It is written in place, and copied for its readers: not before they run.
            first += self.waits_for
        return first

    def _there(self, tensor: Any) -> Any:
        """What stands for `tensor` already; None if it has yet to be made."""
        name = tensor.op.name
        if name in self.number:
            return self.newest[self.number[name], tensor.value_index]
        if name in self.program.constants:
            tensor = self._equal_constant(tensor)
        return self.emitter.provided(tensor)

    def _equal_constant(self, tensor: Any) -> Any:
        """The tensor of the one that stands for all equal constants."""
        first = self.program.constants[tensor.op.name]
        equal = self.program.concrete.graph.get_operation_by_name(first)
        return equal.outputs[tensor.value_index]
