"""Emit a schedule: create every computation anew, in order, on the newest values.

The executor runs an operation as soon as it is ready, so order is what saves memory: each
barrier group waits for the one before it. On a CPU a barrier group is one operation, so that every
step asks for its buffers in the same order (`graph.one_order`, `trace.repeatability`). Elsewhere
those after it that together need too little to matter belong to it, so that small ones may run side
by side. What oneDNN fuses whatever control edges say stays in one barrier group. Sources and views
get no edge.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from typing import Any

import tensorflow as tf

from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.graph.one_order import one_order, parts_of_node
from checkmate_tf.rewriting.instances import Instances
from checkmate_tf.rewriting.ordered_bodies import attributes_in_order
from checkmate_tf.trace.emission import Emitter
from checkmate_tf.trace.fusions import shared_gradient, sibling_of
from checkmate_tf.trace.program import Program, Tensor
from checkmate_tf.trace.repeatability import (
    NO_UPDATES,
    has_one_order,
    updates_in_place,
    written_in_place,
)
from solvers import Schedule, simulate

GROUP_SHARE = 0.01
"""Of the schedule's activation peak: as much as operations out of order may add to it."""


def replay(
    extraction: Extraction,
    schedule: Schedule,
    arguments: Sequence[Any],
    kind: type[Replay],
) -> list[Any]:
    """Create the operations of `schedule` in the default graph.

    Args:
        extraction: of the traced step.
        schedule: node numbers of its graph.
        arguments: one tensor for each flat argument of the traced step.
        kind: how.

    Returns:
        One tensor for each flat output of the traced step.
    """
    program = extraction.program
    emitter = kind.emitter_of(program)
    given = [*arguments, *program.concrete.captured_inputs]
    for placeholder, value in zip(program.concrete.inputs, given, strict=True):
        emitter.provide(placeholder, value)
    instances = kind(extraction, schedule, emitter).run()
    return [instances.of(each) for each in program.concrete.outputs]


def xla_compiles_parts() -> bool:
    """Whether XLA compiles parts of functions, as `tf.config.optimizer.set_jit` asks it to."""
    return bool(tf.config.optimizer.get_jit())


class Replay:
    """What has been emitted so far, and what the next operation waits for."""

    @classmethod
    def is_in_turn(cls) -> bool:
        """Whether each operation waits for the one before it."""
        return has_one_order()

    @classmethod
    def emitter_of(cls, program: Program) -> Emitter:
        """What copies operations of `program` into the default graph.

        The functions that they run get an order, too.
        """
        source, target = program.concrete.graph, tf.compat.v1.get_default_graph()
        return Emitter(source, target, lambda each: attributes_in_order(program.sized[each.name]))

    def __init__(
        self,
        extraction: Extraction,
        schedule: Schedule,
        emitter: Emitter,
        waits_for: Sequence[Any] = (),
    ) -> None:
        """Prepare to create the operations of `schedule`, after those of `waits_for`.

        Args:
            extraction: of the traced step, or of a part of it.
            schedule: node numbers of its graph.
            emitter: into the graph that is being built; it provides what comes from elsewhere.
            waits_for: operations of that graph.
        """
        peak = simulate(extraction.graph, schedule).peak - extraction.graph.fixed_bytes
        self.extraction = extraction
        self.schedule = schedule
        self.program: Program = extraction.program
        self.emitter = emitter
        self.in_turn = self.is_in_turn()
        in_place = written_in_place(self.program) if self.in_turn else frozenset[int]()
        updates = updates_in_place(self.program) if self.in_turn else NO_UPDATES
        self.instances = Instances(self.program, emitter, extraction.tiny, in_place, updates)
        self.group_bytes = GROUP_SHARE * peak
        self.waits_for = list(waits_for)  # the barrier group before
        self.group: list[Any] = []  # emitted after it so far
        self.small_bytes = 0  # needed in the group by all but its first operation

    def run(self) -> Instances:
        """Create them all; returns what stands for the tensors of the step afterwards."""
        # What XLA compiled a part of it would run in an order of its own.
        apart = tf.xla.experimental.jit_scope(compile_ops=False)
        with apart if xla_compiles_parts() else nullcontext():
            return self._run()

    def _run(self) -> Instances:
        if self.in_turn:
            for part in one_order(self.extraction, self.schedule):
                self.waits_for = self._one_of(self._emitted(part))
            return self.instances
        for number in self.extraction.prologue:
            self.instances.emit(number, self.instances.before(number))
        for node, attached in self.extraction.computations(self.schedule):
            for part in parts_of_node(self.program.operations, self.extraction.nodes[node]):
                self._emit_part(part)
            self._emit_attached(node, attached)
        return self.instances

    @property
    def last(self) -> list[Any]:
        """What must have run when the schedule is at its end."""
        return [*self.waits_for, *self.group]

    def _emit_part(self, part: Sequence[int]) -> None:
        for member in part:
            self.small_bytes += sum(t.bytes for t in self.program.produced[member])
            self.small_bytes += self.extraction.workspaces[member]
        if self.small_bytes > self.group_bytes or not self.group:
            self._close_group()
        self.group += self._emitted(part)

    def _emitted(self, part: Sequence[int]) -> list[Any]:
        """Create what may be fused; what reads nothing of it waits for the group before."""
        inside = set(part)
        alias = self._aliases(part)
        return [self.instances.emit(each, self._first(each, inside), alias) for each in part]

    def _first(self, number: int, inside: Collection[int]) -> list[Any]:
        """What an operation waits for; with what is `inside` its part it may be fused."""
        reads_inside = any(t.producer in inside for t in self.program.reads[number])
        first = [] if reads_inside else self.waits_for
        # What is attached to a node belongs to no group.
        return first if self.in_turn else [*first, *self.instances.before(number)]

    def _aliases(self, part: Sequence[int]) -> dict[int, Any]:
        """Other names for the tensors by which oneDNN finds siblings, where they are recomputed.

        By the same name it would fuse parts of two computations, which wait for each other.
        """
        alias: dict[int, Any] = {}
        for number in part:
            operation = self.program.operations[number]
            if sibling_of(operation.type) and (number, 0) in self.instances.newest:
                shared = self.instances.of(shared_gradient(operation))
                if id(shared) not in alias:
                    alias[id(shared)] = self.emitter.alias(shared)
        return alias

    def _close_group(self) -> None:
        """Let all that follows wait for all that is there."""
        self.waits_for = self._one_of(self.group) or self.waits_for
        self.group = []
        self.small_bytes = 0

    def _one_of(self, group: list[Any]) -> list[Any]:
        """What to wait for instead of them all."""
        if len(group) < 2:
            return group
        # On their device: to wait for another one would take time.
        return [self.emitter.create_barrier(group, group[0].device)]

    def _emit_attached(self, node: int, attached: Sequence[int]) -> None:
        """What runs once, beside the schedule, but before a large tensor that it reads may go."""
        if not self.extraction.graph.nodes[node].recomputable:
            # The rest of a variable's update; what follows may count on its buffers.
            for number in attached:
                self._emit_part([number])
            return
        for number in attached:
            made = self.instances.emit(number, self.instances.before(number))
            if any(self._is_large(tensor) for tensor in self.program.reads[number]):
                self.group.append(made)

    def _is_large(self, tensor: Tensor) -> bool:
        return (tensor.producer, tensor.index) not in self.instances.tiny
