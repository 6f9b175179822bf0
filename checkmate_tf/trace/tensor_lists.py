"""Bytes of TensorLists: what a loop or a branch keeps for its gradient, and arrays that it fills.

A list is a handle with no shape of its own. What it holds follows from the operations that fill
it, and how many elements those of a loop add from the most iterations that it may run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import tensorflow as tf

from checkmate_tf.trace.bodies import BRANCHES, LOOPS, Body, bodies
from checkmate_tf.trace.depth_first import tensor_key
from checkmate_tf.trace.iterations import most_iterations, number_of
from checkmate_tf.trace.operations import READS, under_views
from profiles.operation_facts import facts, types

_NEW = types(lambda each: each.elements == "none")

Size = Callable[[Any], int | None]


def list_bytes(operation: Any, size: Size) -> tuple[int | None, ...]:
    """Bytes that each list that `operation` returns adds to those it was made from.

    Args:
        operation: with known shapes; 0 is said of those of its outputs that are no variants.
        size: bytes of a tensor, None where its shape is unknown.

    Returns:
        Bytes for each output; None where they can't be told.
    """
    if operation.type in LOOPS:
        return _loop_bytes(operation, size)
    if operation.type in BRANCHES:
        return _branch_bytes(operation, size)
    if operation.type == "ZerosLike" and operation.inputs[0].dtype == tf.variant:
        # As many elements, each in a buffer of its own.
        like = under_views(operation.inputs[0])
        return (list_bytes(like.op, size)[like.value_index],)
    if operation.type == "AddN" and operation.outputs[0].dtype == tf.variant:
        # Element by element; an element that only one of them has is shared.
        added = map(under_views, operation.inputs)
        sizes = [list_bytes(each.op, size)[each.value_index] for each in added]
        known = [each for each in sizes if each is not None]
        return (min(known) if len(known) == len(sizes) else None,)
    each = _added(operation, size)
    return tuple(each if output.dtype == tf.variant else 0 for output in operation.outputs)


def holds_a_list(operation: Any, index: int) -> bool:
    """Whether that output of `operation` is a list that may have elements."""
    is_variant = operation.outputs[index].dtype == tf.variant
    return bool(is_variant and operation.type not in _NEW)


def shape_of_elements(tensor: Any) -> tf.TensorShape:
    """What is known of the shape that all elements of a list have; `tensor` is the list.

    Nothing where a loop did not make it, or where its iterations add elements of several shapes.
    """
    made = under_views(tensor)
    if made.op.type not in LOOPS or made.dtype != tf.variant:
        return tf.TensorShape(None)
    (body,) = bodies(made.op)
    last = under_views(body.outputs[made.value_index]).op
    shapes = []
    while (added := _added_by(last)) is not None:
        shapes.append(added.shape)
        last = under_views(last.inputs[0]).op
    if last.type != "Placeholder" or not all(each.is_fully_defined() for each in shapes):
        return tf.TensorShape(None)
    known = {tuple(each.as_list()) for each in shapes}
    return tf.TensorShape(known.pop() if len(known) == 1 else None)


def _added_by(operation: Any) -> Any | None:
    """The element that `operation` adds to a list; None if it does nothing of the kind."""
    place = facts(operation.type).elements
    return operation.inputs[place] if isinstance(place, int) else None


def _added(operation: Any, size: Size) -> int | None:
    if facts(operation.type).elements in ("none", "elsewhere"):
        return 0
    is_made_of_it = operation.type == "TensorListFromTensor"
    added = operation.inputs[0] if is_made_of_it else _added_by(operation)
    return None if added is None else size(added)


def _branch_bytes(branch: Any, size: Size) -> tuple[int | None, ...]:
    """Of the values that a branch keeps for its gradient, each in a list of at most one."""
    kept = [_kept(body, size) for body in bodies(branch)]
    return tuple(
        None if None in sizes else max(each for each in sizes if each is not None)
        for sizes in zip(*kept, strict=True)
    )


def _kept(body: Body, size: Size) -> list[int | None]:
    """Bytes of the values in what a body returns as variants, each value counted once."""
    given = {tensor_key(each) for each in body.inputs}
    counted = given | {tensor_key(under_views(each)) for each in body.outputs}
    found: list[int | None] = []
    for output in body.outputs:
        made = under_views(output).op
        if output.dtype != tf.variant or made.type == "OptionalNone":
            found.append(0)
        elif made.type == "OptionalFromValue":
            values = {tensor_key(each): each for each in map(under_views, made.inputs)}
            new = [each for key, each in values.items() if key not in counted]
            sizes = [size(each) for each in new if each.op.type not in READS]
            counted |= values.keys()
            found.append(None if None in sizes else sum(each or 0 for each in sizes))
        else:
            found.append(None)
    return found


def _loop_bytes(loop: Any, size: Size) -> tuple[int | None, ...]:
    (body,) = bodies(loop)
    added: list[int | None] = [0] * len(body.outputs)
    counted: set[tuple[str, int]] = set()
    # Two lists may share their elements. Those that the gradient reads are held the longest.
    for place in sorted(range(len(body.outputs)), key=lambda each: _is_overwritten(body, each)):
        if body.outputs[place].dtype == tf.variant:
            elements = _added_to(body, body.outputs[place], ("Placeholder", "TensorListPopBack"))
            added[place] = _all_bytes(elements, counted, _most_added(loop, body, place), size)
            counted.update(map(tensor_key, elements or ()))
    return tuple(added)


def _all_bytes(
    elements: list[Any] | None,
    counted: Collection[tuple[str, int]],
    most: int | None,
    size: Size,
) -> int | None:
    """Bytes of what is added at most, without what has been counted; None if unknown."""
    if elements is None:
        return None
    total = 0
    for each in elements:
        if tensor_key(each) not in counted:
            bytes_of_one = size(each)
            if bytes_of_one is None or most is None:
                return None
            total += most * bytes_of_one
    return total


def _is_overwritten(body: Body, place: int) -> bool:
    return bool(under_views(body.outputs[place]).op.type != "TensorListPushBack")


def _added_to(body: Body, tensor: Any, known: Collection[str]) -> list[Any] | None:
    """Elements that are added to a list that operations of these types have made; else None."""
    found = []
    tensor = under_views(tensor)
    while (added := _added_by(tensor.op)) is not None:
        element = _origin(body, added)
        if element is not None:
            found.append(element)
        tensor = under_views(tensor.op.inputs[0])
    if tensor.op.type == "AddN":  # the gradient of an array that is read element by element
        parts = [_added_to(body, each, {*known, *_NEW}) for each in tensor.op.inputs]
        if None in parts:
            return None
        return found + [element for part in parts for element in part or ()]
    return found if tensor.op.type in known else None


def _origin(body: Body, element: Any) -> Any | None:
    """The tensor of an iteration in whose buffer the element lies; None if it is held anyway."""
    inputs = {tensor_key(each): place for place, each in enumerate(body.inputs)}
    for _ in body.inputs:
        element = under_views(element)
        place = inputs.get(tensor_key(element))
        if place is None:
            break
        given = under_views(body.outputs[place])  # by the iteration before
        if tensor_key(given) == tensor_key(element):
            return None
        element = given
    fixed = element.op.type in READS or tf.get_static_value(element) is not None
    return None if fixed else element


def _most_added(loop: Any, body: Body, place: int) -> int | None:
    """How many elements a loop adds at most to the list at `place`; None if unknown."""
    last = under_views(body.outputs[place]).op
    given = under_views(loop.inputs[place]).op
    may_grow = last.type != "TensorListSetItem" or last.get_attr("resize_if_index_out_of_bounds")
    if given.type == "TensorListReserve" and not may_grow:
        return number_of(given.inputs[1])
    return most_iterations(loop)
