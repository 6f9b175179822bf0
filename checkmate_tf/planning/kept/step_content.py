"""What a step does, as a digest: by it a kept plan is found again in another process."""

from __future__ import annotations

import hashlib
import re
from typing import Any
from weakref import WeakKeyDictionary

from checkmate_tf.trace.program import Program
from checkmate_tf.trace.signatures import signature
from profiles.nested import Nested
from profiles.operation import Operation

_NAMES = frozenset(["shared_name", "container"])
"""Attributes that name something of this process."""

_KNOWN: WeakKeyDictionary[Program, str] = WeakKeyDictionary()

_TRACE_NUMBER = re.compile(r"(__(?:inference|forward|backward)_\w*?)_\d+")
"""Functions inside a step are numbered as they are traced."""


def step_content(program: Program) -> str:
    """A digest of the operations of a step: types, sizes, attributes, and who reads what.

    It is asked for several times while a step is planned, and made once.

    Names and constants are not in it, and no costs: a step that differs in these alone runs by the
    same schedule in the same memory.
    """
    if program not in _KNOWN:
        _KNOWN[program] = _digest(program)
    return _KNOWN[program]


def _digest(program: Program) -> str:
    digest = hashlib.sha256()
    for number, operation in enumerate(program.operations):
        described = _described(signature(program.sized[operation.name]))
        reads = sorted((each.producer, each.index) for each in program.reads[number])
        sizes = [each.bytes for each in program.produced[number]]
        waits = sorted(program.order[number]), sorted(program.expires[number])
        digest.update(repr((described, reads, sizes, waits)).encode())
    outputs = sorted((each.producer, each.index) for each in program.outputs)
    digest.update(repr((outputs, program.fixed_bytes)).encode())
    return digest.hexdigest()


def _described(operation: Operation) -> tuple[Any, ...]:
    attributes = [
        (name, _TRACE_NUMBER.sub(r"\1", value) if isinstance(value, str) else value)
        for name, value in operation.attributes
        if not name.startswith("_") and name not in _NAMES
    ]
    inside: tuple[Any, ...] = ()
    if isinstance(operation, Nested):
        parts = tuple(map(_described, operation.parts))
        inside = (parts, operation.repeats, operation.definition, operation.contents)
    sizes = [(each.dtype, each.shape) for each in (*operation.inputs, *operation.outputs)]
    return operation.type, sizes, attributes, operation.constants, inside
