"""Emit instructions: create every operation anew, in order, on the values that it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import tensorflow as tf

from checkmate_tf.devices.device import Device, Order
from checkmate_tf.program.instructions import START, Instruction, Instructions, Kernel, Tie
from checkmate_tf.program.masks import computed_masks
from checkmate_tf.program.max_pool_gradient import EmitterForXLA
from checkmate_tf.program.ordered_bodies import attributes_in_order
from checkmate_tf.program.ties import kept, tied, zero_after
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
from checkmate_tf.trace.program import Program

_LEFT_OUT = PASS_THROUGH - NO_GRADIENTS
"""Views that are not emitted: their input stands for them. Those that stop gradients are, for the
function around the step may be differentiated."""


def emit(
    program: Program, instructions: Instructions, arguments: Sequence[Any], device: Device
) -> list[Any]:
    """Create what `instructions` say in the default graph.

    Args:
        program: the traced step.
        instructions: of it.
        arguments: one tensor for each flat argument of the traced step.
        device: that the instructions are for.

    Returns:
        One tensor for each flat output of the traced step.
    """
    emitter = emitter_for(program, device)
    given = [*arguments, *program.concrete.captured_inputs]
    for placeholder, value in zip(program.concrete.inputs, given, strict=True):
        emitter.provide(placeholder, value)
    if device.order is not Order.COMPILED:
        for mask, value in computed_masks(program, device):
            emitter.provide(mask, emitter.target.capture(value))
    emission = Emission(program, emitter)
    emission.run(instructions)
    return [emission.of(each) for each in program.concrete.outputs]


def emitter_for(program: Program, device: Device) -> Emitter:
    """What copies operations of `program` into the default graph.

    The functions that they run get an order, too, but for XLA, which has one of its own.
    """
    source, target = program.concrete.graph, tf.compat.v1.get_default_graph()
    if device.order is Order.COMPILED:
        return EmitterForXLA(source, target)
    return Emitter(source, target, lambda each: attributes_in_order(program.sized[each.name]))


def xla_compiles_parts() -> bool:
    """Whether XLA compiles parts of functions, as `tf.config.optimizer.set_jit` asks it to."""
    return bool(tf.config.optimizer.get_jit())


class Emission:
    """What has been emitted so far of a list of instructions."""

    def __init__(self, program: Program, emitter: Emitter, first: Sequence[Any] = ()) -> None:
        """What is not of the program must be provided by the emitter.

        Args:
            program: the traced step, or a part of it.
            emitter: into the graph that is being built.
            first: operations of that graph that run before the first instruction.
        """
        self.program = program
        self.emitter = emitter
        self.first = list(first)
        self.last: list[Any] = []  # when these have run, all have
        self.number = {op.name: place for place, op in enumerate(program.operations)}
        self.copies: dict[int, Any] = {}  # by operation number: what was emitted for it last
        self._emitted: list[Any] = []  # by instruction: the operation
        self._values: list[Mapping[int, Any]] = []  # by instruction: its outputs
        self._here: dict[tuple[int, int], Any] = {}  # what the instruction under way reads
        self._controls: Sequence[Any] = ()  # of it
        self._views: dict[tuple[str, int, tuple[int, ...]], tuple[Any, list[Any]]] = {}
        self._renamed: dict[tuple[int, int], Any] = {}
        self._zeros: dict[tuple[int, int], Any] = {}
        self._written: set[str] = set()  # handles of variables that are written in place

    def run(self, instructions: Instructions) -> None:
        """Create all of them; afterwards `of` says what stands for the results."""
        self._written = {
            under_views(self.program.operations[each.operation].inputs[0]).name
            for each in instructions
            if each.kernel is Kernel.WRITE_IN_PLACE and each.operation is not None
        }
        # What XLA compiled a part of it would run in an order of its own.
        apart = tf.xla.experimental.jit_scope(compile_ops=False)
        with apart if xla_compiles_parts() else nullcontext():
            for each in instructions:
                self._add(each)

    def _add(self, each: Instruction) -> None:
        """Create one operation."""
        self._here = {(t.producer, t.index): self._values[by][t.index] for t, by in each.reads}
        controls = [*self._operations(each.waits_for)]
        if each.kernel is Kernel.RETURN:
            made, self.last = None, controls
        elif each.kernel is Kernel.BARRIER:
            # On their device: to wait for another one would take time.
            made = self.emitter.create_barrier(controls, controls[0].device)
        elif each.kernel is Kernel.KEEP:
            self._keep(each)
            return
        else:
            made = self._create(each, controls)
        self._emitted.append(made)
        self._values.append(dict(enumerate(made.outputs)) if made is not None else {})

    def _operations(self, numbers: Iterable[int]) -> Iterable[Any]:
        for each in numbers:
            yield from self.first if each == START else [self._emitted[each]]

    def _keep(self, each: Instruction) -> None:
        ((tensor, by),) = each.reads
        (tie,) = each.ties
        now = kept(self._values[by][tensor.index], self._zero(tie))
        self._emitted.append(now.op)
        self._values.append({tensor.index: now})

    def _create(self, each: Instruction, controls: list[Any]) -> Any:
        assert each.operation is not None
        operation = self.program.operations[each.operation]
        alias = self._alias(each) | self._tied(each)
        self._controls = controls
        inputs = [self.of(tensor) for tensor in (each.update or operation).inputs]
        self._controls = ()
        inputs = [alias.get(id(tensor), tensor) for tensor in inputs]
        if each.update is not None:
            copy = self.emitter.create_in_place_of(
                operation, KERNEL, inputs, each.update.attributes, controls
            )
        elif each.kernel is Kernel.SUM:
            inputs = [inputs[place] for place in self.program.sums.order(operation)]
            copy = self.emitter.create_sum(operation, inputs, controls)
        elif each.kernel is Kernel.WRITE_IN_PLACE:
            copy = self.emitter.create_write_in_place(operation, inputs, controls)
        else:
            copy = self.emitter.create(operation, inputs, controls)
        self.copies[each.operation] = copy
        return copy

    def _alias(self, each: Instruction) -> dict[int, Any]:
        """Another name for the tensor by which oneDNN finds siblings (`Instruction.renamed`)."""
        if each.renamed is None:
            return {}
        tensor, first = each.renamed
        shared = self.of(tensor)
        key = first, id(shared)
        if key not in self._renamed:
            self._renamed[key] = self.emitter.alias(shared)
        return {id(shared): self._renamed[key]}

    def _tied(self, each: Instruction) -> dict[int, Any]:
        """What stands for an input, so that it waits (`Instruction.ties`)."""
        return {
            id(now): tied(now, self._zero(tie))
            for tie in each.ties
            for now in [self.of(tie.operand)]
        }

    def _zero(self, tie: Tie) -> Any:
        if tie.after is None:
            return zero_after(self.of(tie.late))
        tensor, by = tie.after
        key = by, tensor.index
        if key not in self._zeros:
            self._zeros[key] = zero_after(self._values[by][tensor.index])
        return self._zeros[key]

    # What stands for a tensor of the trace.

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
        if key not in self._views:
            copy = self.emitter.create(operation, inputs)
            for index, output in enumerate(copy.outputs):
                # The inputs are held, so that no other tensor can get the id of one of them.
                self._views[operation.name, index, key[2]] = output, inputs
        return self._views[key][0]

    def _before_read(self, operation: Any) -> list[Any]:
        """What a variable is read after, besides its writes."""
        late = sorted(self.program.late_reads.get(operation.name, ()))
        first = [self.copies[each] for each in late if each in self.copies]
        if under_views(operation.inputs[0]).name in self._written:
            # It is written in place, and copied for its readers: not before they run.
            first += self._controls
        return first

    def _there(self, tensor: Any) -> Any:
        """What stands for `tensor` already; None if it has yet to be made."""
        name = tensor.op.name
        if name in self.number:
            return self._here[self.number[name], tensor.value_index]
        if name in self.program.constants:
            tensor = self._equal_constant(tensor)
        return self.emitter.provided(tensor)

    def _equal_constant(self, tensor: Any) -> Any:
        """The tensor of the one that stands for all equal constants."""
        first = self.program.constants[tensor.op.name]
        equal = self.program.concrete.graph.get_operation_by_name(first)
        return equal.outputs[tensor.value_index]
