"""Emit a schedule: create every computation anew, in order, on the newest values.

The executor runs an operation as soon as it is ready, so order is what saves memory: each
barrier group waits for the one before it. A barrier group is one operation of any size, and those
after it that together need too little to matter, so that small ones may run side by side. What
oneDNN fuses whatever control edges say stays in one barrier group. Sources and views get no edge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import tensorflow as tf

from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.trace.depth_first import finish, tensor_key
from checkmate_tf.trace.emission import Emitter
from checkmate_tf.trace.fusions import may_fuse, shared_gradient, sibling_of
from checkmate_tf.trace.operations import PASS_THROUGH, SOURCES, VIEWS
from checkmate_tf.trace.program import Tensor
from solvers import Schedule, simulate

_NO_ALIASES: Mapping[int, Any] = {}

GROUP_SHARE = 0.01
"""Of the schedule's activation peak: as much as operations out of order may add to it."""


def replay(extraction: Extraction, schedule: Schedule, arguments: Sequence[Any]) -> list[Any]:
    """Create the operations of `schedule` in the default graph.

    Args:
        extraction: of the traced step.
        schedule: node numbers of its graph.
        arguments: one tensor for each flat argument of the traced step.

    Returns:
        One tensor for each flat output of the traced step.
    """
    graph = extraction.graph
    peak = simulate(graph, schedule).peak - graph.fixed_bytes
    return _Replay(extraction, arguments, GROUP_SHARE * peak).run(schedule)


class _Replay:
    """What has been emitted so far, and what the next operation waits for."""

    def __init__(
        self, extraction: Extraction, arguments: Sequence[Any], group_bytes: float
    ) -> None:
        program = extraction.program
        self.extraction = extraction
        self.program = program
        self.number = {op.name: place for place, op in enumerate(program.operations)}
        self.emitter = Emitter(program.concrete.graph, tf.compat.v1.get_default_graph())
        placeholders = program.concrete.inputs
        given = [*arguments, *program.concrete.captured_inputs]
        for placeholder, value in zip(placeholders, given, strict=True):
            self.emitter.provide(placeholder, value)
        self.newest: dict[tuple[int, int], Any] = {}
        self.views: dict[tuple[str, int, tuple[int, ...]], tuple[Any, list[Any]]] = {}
        self.group_bytes = group_bytes
        self.waits_for: list[Any] = []  # the barrier group before
        self.group: list[Any] = []  # emitted after it so far
        self.small_bytes = 0  # needed in the group by all but its first operation
        self.tiny = {(tensor.producer, tensor.index) for tensor in extraction.tiny}

    def run(self, schedule: Schedule) -> list[Any]:
        for number in self.extraction.prologue:
            self._emit(number, [])
        for node, attached in self.extraction.computations(schedule):
            for part in parts_of_node(self.program.operations, self.extraction.nodes[node]):
                self._emit_part(part)
            self._emit_attached(node, attached)
        return [self._instance(each) for each in self.program.concrete.outputs]

    def _emit_part(self, part: Sequence[int]) -> None:
        inside = set(part)
        for member in part:
            self.small_bytes += sum(t.bytes for t in self.program.produced[member])
            self.small_bytes += self.extraction.workspaces[member]
        if self.small_bytes > self.group_bytes or not self.group:
            self._close_group()
        alias = self._aliases(part)
        self.group += [
            self._emit(
                number,
                []
                if any(tensor.producer in inside for tensor in self.program.reads[number])
                else self.waits_for,
                alias,
            )
            for number in part
        ]

    def _aliases(self, part: Sequence[int]) -> dict[int, Any]:
        """Other names for the tensors by which oneDNN finds siblings, where they are recomputed.

        By the same name it would fuse parts of two computations, which wait for each other.
        """
        alias: dict[int, Any] = {}
        for number in part:
            operation = self.program.operations[number]
            if sibling_of(operation.type) and (number, 0) in self.newest:
                shared = self._instance(shared_gradient(operation))
                if id(shared) not in alias:
                    alias[id(shared)] = self.emitter.alias(shared)
        return alias

    def _close_group(self) -> None:
        """Let all that follows wait for all that is there."""
        if len(self.group) > 1:
            with self.emitter.target.control_dependencies(self.group):
                self.group = [tf.no_op()]
        self.waits_for = self.group or self.waits_for
        self.group = []
        self.small_bytes = 0

    def _emit_attached(self, node: int, attached: Sequence[int]) -> None:
        """What runs once, beside the schedule, but before a large tensor that it reads may go."""
        if not self.extraction.graph.nodes[node].recomputable:
            # The rest of a variable's update; what follows may count on its buffers.
            for number in attached:
                self._emit_part([number])
            return
        for number in attached:
            made = self._emit(number, [])
            if any(self._is_large(tensor) for tensor in self.program.reads[number]):
                self.group.append(made)

    def _is_large(self, tensor: Tensor) -> bool:
        return (tensor.producer, tensor.index) not in self.tiny

    def _emit(
        self, number: int, control_inputs: Sequence[Any], alias: Mapping[int, Any] = _NO_ALIASES
    ) -> Any:
        operation = self.program.operations[number]
        inputs = [self._instance(each) for each in operation.inputs]
        inputs = [alias.get(id(each), each) for each in inputs]
        if operation.type == "AddN" and len(inputs) > 2:
            inputs = [inputs[place] for place in self.program.sums.order(operation)]
            copy = self.emitter.create_sum(operation, inputs, control_inputs)
        else:
            copy = self.emitter.create(operation, inputs, control_inputs)
        for index, output in enumerate(copy.outputs):
            key = (number, index)
            # A tiny tensor stays from its first computation on.
            if key not in self.tiny or key not in self.newest:
                self.newest[key] = output
        return copy

    def _instance(self, tensor: Any) -> Any:
        """The tensor that stands for `tensor` now."""
        now: dict[tuple[str, int], Any] = {}

        def make(each: Any) -> None:
            now[tensor_key(each)] = self._make(
                each, [now[tensor_key(n)] for n in self._needs(each)]
            )

        finish(tensor, now, tensor_key, self._needs, make)
        return now[tensor_key(tensor)]

    def _needs(self, tensor: Any) -> list[Any]:
        """What must be there before something can stand for `tensor`."""
        operation = tensor.op
        if operation.name in self.number or self.emitter.provided(tensor) is not None:
            return []
        if operation.name in self.program.constants:
            equal = self._equal_constant(tensor)
            there = self.emitter.provided(equal) is not None
            return [] if there else list(equal.op.inputs)
        if operation.type in PASS_THROUGH:
            return [operation.inputs[tensor.value_index]]
        return list(operation.inputs)

    def _make(self, tensor: Any, inputs: list[Any]) -> Any:
        """What stands for `tensor`, where `inputs` stand for what it needs."""
        operation = tensor.op
        if operation.name in self.number:
            return self.newest[self.number[operation.name], tensor.value_index]
        if operation.name in self.program.constants:
            tensor = self._equal_constant(tensor)
        provided = self.emitter.provided(tensor)
        if provided is not None:
            return provided
        if operation.name in self.program.constants or operation.type in SOURCES:
            self.emitter.create_shared(tensor.op, inputs)
            return self.emitter.provided(tensor)
        assert operation.type in VIEWS, f"nothing stands for {tensor}"
        if operation.type in PASS_THROUGH:
            return inputs[0]
        key = (operation.name, tensor.value_index, tuple(id(each) for each in inputs))
        if key not in self.views:
            copy = self.emitter.create(operation, inputs)
            for index, output in enumerate(copy.outputs):
                # The inputs are held, so that no other tensor can get the id of one of them.
                self.views[operation.name, index, key[2]] = output, inputs
        return self.views[key][0]

    def _equal_constant(self, tensor: Any) -> Any:
        """The tensor of the one that stands for all equal constants."""
        first = self.program.constants[tensor.op.name]
        equal = self.program.concrete.graph.get_operation_by_name(first)
        return equal.outputs[tensor.value_index]


def parts_of_node(operations: Sequence[Any], members: Sequence[int]) -> list[list[int]]:
    """Split the operations of a node where one must wait for the other; fused pairs stay whole."""
    cut_before = set(range(1, len(members)))
    for first, one in enumerate(members):
        for second in range(first + 1, len(members)):
            if may_fuse(operations[one].type, operations[members[second]].type):
                cut_before -= set(range(first + 1, second + 1))
    bounds = [0, *sorted(cut_before), len(members)]
    return [list(members[start:end]) for start, end in pairwise(bounds)]
