"""Which operations TensorFlow makes constants of, and which of these are equal.

Grappler computes what depends on constants alone once, before the first step, and keeps it for
ever. Operations that are told to run at some time, as those of a schedule are, become a constant
each, even if they are equal. So they have no place in a schedule: they are fixed memory, and one
stands for all its equals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from checkmate_tf.trace.operations import is_stateful
from profiles.operation_facts import facts

_SMALL = 100 * 1024
"""Bytes up to which Grappler folds a result that is larger than its inputs.

They are those of its encoding, in which one number, however often, is written once.

Source: kMaxConstantSize and CreateNodeDef in TensorFlow's constant_folding.cc.
"""


def folded_constants(needed: Iterable[Any], size: Callable[[Any], int]) -> dict[str, str]:
    """The operations that become constants: by name, the first that is equal.

    Args:
        needed: operations in a topological order.
        size: bytes of a tensor.
    """
    number: dict[Any, int] = {}  # of what is computed
    of: dict[str, int] = {}  # of an operation
    first: dict[int, str] = {}
    found: dict[str, str] = {}
    alike: set[str] = set()  # those that make one number, however often
    for operation in needed:
        is_given = operation.type == "Const"
        is_alike = _is_one_number(operation, alike)
        if not is_given and not _is_folded(operation, of, size, is_alike):
            continue
        if is_alike:
            alike.add(operation.name)
        inputs = tuple((of[each.op.name], each.value_index) for each in operation.inputs)
        # One of another device would have to be sent at every step.
        key = operation.type, operation.device, _attributes(operation), inputs
        of[operation.name] = number.setdefault(key, len(number))
        if not is_given:
            found[operation.name] = first.setdefault(of[operation.name], operation.name)
    return found


def _is_one_number(operation: Any, alike: set[str]) -> bool:
    """Whether all that `operation` makes is one number; `alike` are others of which that holds."""
    if operation.type == "Const":
        value = tf.get_static_value(operation.outputs[0])
        return value is not None and value.size > 0 and bool((value == value.flat[0]).all())
    row = facts(operation.type)
    if row.buffer == "view" or row.one_number == "passed on":
        return bool(operation.inputs) and operation.inputs[0].op.name in alike
    if row.buffer == "in place":
        return all(each.op.name in alike for each in operation.inputs)
    return row.one_number == "always"


def _is_folded(
    operation: Any, known: dict[str, int], size: Callable[[Any], int], is_alike: bool
) -> bool:
    if not operation.inputs or not operation.outputs or is_stateful(operation):
        return False
    if any(each.op.name not in known for each in operation.inputs):
        return False
    if any(attribute.HasField("func") for attribute in operation.node_def.attr.values()):
        return False
    if is_alike:
        return True
    given = sum(map(size, operation.inputs))
    return all(size(each) <= max(given, _SMALL) for each in operation.outputs)


def _attributes(operation: Any) -> tuple[tuple[str, bytes], ...]:
    attributes = operation.node_def.attr.items()
    return tuple(
        (name, value.SerializeToString(deterministic=True))
        for name, value in sorted(attributes)
        if not name.startswith("_")
    )
