"""Which writes go into the variable's own buffer, so that steps hold alike.

An allocator that looks for the best piece holds much the same in two steps only if both begin with
the same free pieces. So variables stay where they are: an update by momentum is one kernel that
does it all (`trace.momentum_updates`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import tensorflow as tf

from checkmate_tf.trace.momentum_updates import MomentumUpdate, momentum_updates
from checkmate_tf.trace.operations import ELEMENTWISE, OVERWRITES, READS, under_views
from checkmate_tf.trace.program import Program
from checkmate_tf.trace.sizes import tensor_bytes
from profiles.tensorflow_internals import variable_content

SMALL_VARIABLE = 64 << 10
"""Bytes of a variable of which a copy for every reader costs nothing."""

_KNOWN: WeakKeyDictionary[Program, dict[bool, InPlace]] = WeakKeyDictionary()
"""What was found for a program, with kernels and without; its steps must not be written in two ways
on one device."""


@dataclass(frozen=True)
class InPlace:
    """What is done in the variables' own buffers; by default nothing.

    Attributes:
        writes: numbers of the writes that go there. From the first of them on TensorFlow copies the
            variable for every reader, for good. So they are those of small variables, and of an
            optimizer's slots, which nothing but updates reads; a weight that a layer reads would be
            there twice.
        kernels: updates that one kernel does, by the number of the operation in whose place it
            runs.
        left_out: numbers of the other operations that such a kernel stands for.
        copied: by operation, bytes of the variables of which it reads a copy.
    """

    writes: frozenset[int] = frozenset()
    kernels: Mapping[int, MomentumUpdate] = field(default_factory=dict)
    left_out: frozenset[int] = frozenset()
    copied: Mapping[int, Sequence[int]] = field(default_factory=dict)


def in_place(program: Program, by_kernels: bool = True) -> InPlace:
    """What can be done in place in `program`, without changing a bit.

    Without `by_kernels`, by writes alone: a GPU's kernels multiply and add with one rounding.
    """
    known = _KNOWN.setdefault(program, {})
    if by_kernels not in known:
        plain = _plain_variables(program)
        found = momentum_updates(program, plain) if by_kernels else []
        kernels = {each.last: each for each in found}
        left_out = frozenset().union(*(each.replaced for each in found)) - kernels.keys()
        writes = _writes(program, plain, left_out)
        known[by_kernels] = InPlace(writes, kernels, left_out, _copied(program, writes))
    return known[by_kernels]


def _copied(program: Program, writes: frozenset[int]) -> dict[int, list[int]]:
    copied = {under_views(program.operations[number].inputs[0]).name for number in writes}
    copies: dict[int, list[int]] = defaultdict(list)
    for number, operation in enumerate(program.operations if copied else ()):
        for tensor in operation.inputs:
            source = under_views(tensor)
            if source.op.type in READS and under_views(source.op.inputs[0]).name in copied:
                value = program.sized[source.op.name].outputs[0]
                copies[number].append(tensor_bytes(value.dtype, value.shape) or 0)
    return dict(copies)


def _writes(program: Program, plain: set[str], left_out: frozenset[int]) -> frozenset[int]:
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
