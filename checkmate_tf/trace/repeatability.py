"""What makes every step hold the same bytes: one order, and variables that stay where they are.

An allocator that looks for the best piece holds the same in two steps only if both ask for the same
buffers in the same order and begin with the same free pieces. So on a CPU one operation runs after
the other, and writes go into the variable's own buffer: an update by momentum by one kernel that
does it all (`trace.momentum_updates`). Other devices keep TensorFlow's ways.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import tensorflow as tf

from checkmate_tf.trace.momentum_updates import MomentumUpdate, momentum_updates
from checkmate_tf.trace.operations import ELEMENTWISE, OVERWRITES, READS, under_views
from checkmate_tf.trace.program import Program, Tensor
from checkmate_tf.trace.sizes import tensor_bytes
from profiles.devices import default_device
from profiles.tensorflow_internals import variable_content

SMALL_VARIABLE = 64 << 10
"""Bytes of a variable of which a copy for every reader costs nothing."""

_KNOWN: WeakKeyDictionary[Program, frozenset[int]] = WeakKeyDictionary()
"""What was found for a program; its steps must not be written in two ways."""

_COPIES: WeakKeyDictionary[Program, Mapping[int, Sequence[int]]] = WeakKeyDictionary()

_UPDATES: WeakKeyDictionary[Program, InPlaceUpdates] = WeakKeyDictionary()


@dataclass(frozen=True)
class InPlaceUpdates:
    """What one kernel does in place of several operations.

    Attributes:
        kernels: by the number of the operation in whose place it runs.
        left_out: numbers of operations that do not run.
    """

    kernels: Mapping[int, MomentumUpdate]
    left_out: frozenset[int]

    def reads(self, program: Program, number: int) -> frozenset[Tensor]:
        """What is read where operation `number` runs."""
        kernel = self.kernels.get(number)
        return program.reads[number] if kernel is None else kernel.reads


NO_UPDATES = InPlaceUpdates({}, frozenset())


def has_one_order() -> bool:
    """Whether a step's operations run one after the other, as the schedule has them."""
    return default_device().startswith("CPU")


def written_in_place(program: Program) -> frozenset[int]:
    """Numbers of the writes that can go into the variable's own buffer instead of a new one.

    From the first of them on, TensorFlow copies the variable for every reader, for good. So they
    are those of small variables, and of an optimizer's slots, which nothing but updates reads; a
    weight that a layer reads would be there twice.
    """
    if not has_one_order():
        return frozenset()
    if program not in _KNOWN:
        _KNOWN[program] = _written_in_place(program)
    return _KNOWN[program]


def updates_in_place(program: Program) -> InPlaceUpdates:
    """Updates of variables that one kernel does."""
    if not has_one_order():
        return NO_UPDATES
    if program not in _UPDATES:
        found = momentum_updates(program, _plain_variables(program))
        kernels = {each.last: each for each in found}
        replaced = frozenset().union(*(each.replaced for each in found))
        _UPDATES[program] = InPlaceUpdates(kernels, replaced - kernels.keys())
    return _UPDATES[program]


def copies_for_readers(program: Program) -> Mapping[int, Sequence[int]]:
    """By operation, bytes of the variables of which it reads a copy, as they are written in place.

    Only operations that do are there.
    """
    if program not in _COPIES:
        _COPIES[program] = _copies_for_readers(program)
    return _COPIES[program]


def _copies_for_readers(program: Program) -> dict[int, list[int]]:
    numbers = written_in_place(program)
    copied = {under_views(program.operations[number].inputs[0]).name for number in numbers}
    copies: dict[int, list[int]] = defaultdict(list)
    for number, operation in enumerate(program.operations if copied else ()):
        for tensor in operation.inputs:
            source = under_views(tensor)
            if source.op.type in READS and under_views(source.op.inputs[0]).name in copied:
                value = program.sized[source.op.name].outputs[0]
                copies[number].append(tensor_bytes(value.dtype, value.shape) or 0)
    return dict(copies)


def _written_in_place(program: Program) -> frozenset[int]:
    plain = _plain_variables(program)
    left_out = updates_in_place(program).left_out
    read_by_layers = _read_by_layers(program)
    found = set()
    for number, operation in enumerate(program.operations):
        if operation.type not in OVERWRITES or number in left_out:
            continue
        handle = under_views(operation.inputs[0])
        if handle.name not in plain or not _same_content(program, operation):
            continue
        value = program.sized[operation.name].inputs[1]
        size = tensor_bytes(value.dtype, value.shape) or 0
        if size <= SMALL_VARIABLE or handle.name not in read_by_layers:
            found.add(number)
    return frozenset(found)


def _plain_variables(program: Program) -> set[str]:
    """Names of the handles of variables that have a value, each captured once."""
    times = Counter(id(handle) for _, handle in program.captured)
    return {
        inner.name
        for inner, handle in program.captured
        if times[id(handle)] == 1 and variable_content(inner) is not None and _has_value(handle)
    }


def _has_value(handle: Any) -> bool:
    if not hasattr(handle, "numpy") or handle.dtype != tf.resource:
        return False  # of a graph that is being built
    with tf.init_scope():
        return bool(tf.raw_ops.VarIsInitializedOp(resource=handle))


def _same_content(program: Program, operation: Any) -> bool:
    """Whether what is written has the type and the full shape that the variable has for good."""
    value = program.sized[operation.name].inputs[1]
    content = variable_content(under_views(operation.inputs[0]))
    if content is None or not (value.dtype.is_floating or value.dtype.is_integer):
        return False
    shape = tf.TensorShape(content.shape)
    return bool(shape.is_fully_defined() and value.shape == shape and content.dtype == value.dtype)


def _read_by_layers(program: Program) -> set[str]:
    """Names of handles of variables that something else than elementwise operations reads."""
    readers: dict[str, set[str]] = defaultdict(set)
    for operation in program.operations:
        for tensor in operation.inputs:
            source = under_views(tensor)
            if source.op.type in READS:
                readers[under_views(source.op.inputs[0]).name].add(operation.type)
            elif source.dtype == tf.resource and operation.type not in OVERWRITES:
                readers[source.name].add(operation.type)
    updates = ELEMENTWISE | {"AssignAddVariableOp", "AssignSubVariableOp"}
    return {name for name, types in readers.items() if types - updates}
