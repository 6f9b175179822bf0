"""Data dependencies that XLA keeps, where it ignores control edges and merges equal work.

A tie is a zero that XLA can't fold, made of the bits of a tensor. What has it subtracted keeps
every bit, −0.0 and NaN included, but can't be computed before that tensor, and is not equal to
what was computed without it. A quotient by one plus that zero is computed once and then kept:
XLA takes a division to be too costly to compute it for every reader anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from checkmate_tf.trace.operations import under_views
from checkmate_tf.trace.program import Program
from profiles.operation_facts import facts

_BITS = {2: tf.uint16, 4: tf.uint32, 8: tf.uint64}
"""By bytes of a floating-point number: what holds its bits."""


def zero_after(tensor: Any) -> Any:
    """An integer zero, a scalar, that XLA can't compute before it has computed `tensor`.

    All bits of one element are shifted out, in two shifts: XLA makes a zero of a single one.

    Args:
        tensor: of floating-point numbers; it may be empty.

    Example:
        >>> int(zero_after(tf.constant([float("nan"), 1.0])))
        0
    """
    kind = _BITS[tensor.dtype.size]
    bits = tf.bitcast(tf.reshape(tensor, [-1])[:1], kind)
    last = tf.bitwise.right_shift(bits, tf.constant(8 * tensor.dtype.size - 1, kind))
    # Of no elements the greatest is zero.
    return tf.reduce_max(tf.bitwise.right_shift(last, tf.constant(1, kind)))


def tied(tensor: Any, zero: Any) -> Any:
    """`tensor`, to the bit, once `zero_after` has made `zero`."""
    return tensor - tf.cast(zero, tensor.dtype)


def kept(tensor: Any, zero: Any) -> Any:
    """`tensor`, to the bit, in a buffer of its own."""
    return tensor / (1 + tf.cast(zero, tensor.dtype))


def can_be_tied(tensor: Any) -> bool:
    """Whether a zero can be subtracted from `tensor`: all but integers, which may be shapes."""
    return bool(tensor.dtype.is_floating) and tensor.dtype.size in _BITS


def operand_to_tie(program: Program, operation: Any) -> Any | None:
    """The smallest operand of `operation` that can be tied; None if there is none.

    A product is taken only where there is nothing else (see `can_be_kept`).
    """
    sized = program.sized[operation.name]
    places = [
        place
        for place, each in enumerate(operation.inputs)
        if can_be_tied(each) or _is_key(operation, each)
    ]
    if not places:
        return None

    def rank(place: int) -> tuple[bool, int]:
        is_product = facts(under_views(operation.inputs[place]).op.type).xla == "product"
        return is_product, sized.inputs[place].shape.num_elements() or 0

    return operation.inputs[min(places, key=rank)]


def _is_key(operation: Any, tensor: Any) -> bool:
    """Whether `tensor` is what a random operation draws its numbers from."""
    return bool(operation.type.startswith("StatelessRandom") and tensor.dtype == tf.uint64)


def keepable(program: Program) -> set[int]:
    """Numbers of operations of `program` whose outputs can be kept without changing a bit.

    XLA computes what is cheap anew for every reader, which is what keeping prevents. But a product
    is rounded once with a sum that reads it (a fused multiply-add), and twice if it is kept; and
    what is added up in the loop that makes it is added in another order if it is kept. Behind
    further operations of that loop this may still happen, by the registers that they need:
    docs/xla.md says when.
    """
    summed = {
        tensor.producer
        for number, operation in enumerate(program.operations)
        if facts(operation.type).adds_up
        for tensor in program.reads[number]
    }
    return {
        number
        for number, operation in enumerate(program.operations)
        if facts(operation.type).xla == "anew" and number not in summed
    }


def computed_in_readers(program: Program, nodes: Sequence[Sequence[int]]) -> set[int]:
    """Which of `nodes`, groups of operations of `program`, XLA can compute in what reads them."""
    rules = [facts(operation.type).xla for operation in program.operations]
    return {
        node
        for node, members in enumerate(nodes)
        if all(rules[each] in ("in readers", "anew", "product") for each in members)
    }


def late_gradient(operation: Any, copies_early: bool) -> tuple[Any, Any] | None:
    """Of a convolution's gradient, the operand that is there early and the gradient it waits for.

    Else XLA's scheduler makes transposed copies of all such operands at the very start, where it
    `copies_early`. Elsewhere it may so copy kernels, and leaves activations as they are: a tie
    would be a copy.
    """
    row = facts(operation.type)
    places = row.early_and_late
    if places is None or not (copies_early or row.arithmetic == "input gradient"):
        return None
    early, late = (operation.inputs[place] for place in places)
    return early, late
