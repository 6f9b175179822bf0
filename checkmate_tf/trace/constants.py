"""Which operations TensorFlow makes constants of, and which of these are equal.

Grappler computes what depends on constants alone once, before the first step, and keeps it for
ever. Operations that are told to run at some time, as those of a schedule are, become a constant
each, even if they are equal. So they have no place in a schedule: they are fixed memory, and one
stands for all its equals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from checkmate_tf.trace.operations import is_stateful

_SMALL = 100 * 1024
"""Bytes up to which Grappler folds a result that is larger than its inputs.

Source: kMaxConstantSize in TensorFlow's constant_folding.cc.
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
    for operation in needed:
        is_given = operation.type == "Const"
        if not is_given and not _is_folded(operation, of, size):
            continue
        inputs = tuple((of[each.op.name], each.value_index) for each in operation.inputs)
        # One of another device would have to be sent at every step.
        key = operation.type, operation.device, _attributes(operation), inputs
        of[operation.name] = number.setdefault(key, len(number))
        if not is_given:
            found[operation.name] = first.setdefault(of[operation.name], operation.name)
    return found


def _is_folded(operation: Any, known: dict[str, int], size: Callable[[Any], int]) -> bool:
    if not operation.inputs or not operation.outputs or is_stateful(operation):
        return False
    if any(each.op.name not in known for each in operation.inputs):
        return False
    if any(attribute.HasField("func") for attribute in operation.node_def.attr.values()):
        return False
    if operation.type == "Fill":
        return True  # one number, however often, is a small constant to Grappler
    given = sum(map(size, operation.inputs))
    return all(size(each) <= max(given, _SMALL) for each in operation.outputs)


def _attributes(operation: Any) -> tuple[tuple[str, bytes], ...]:
    attributes = operation.node_def.attr.items()
    return tuple(
        (name, value.SerializeToString(deterministic=True))
        for name, value in sorted(attributes)
        if not name.startswith("_")
    )
