"""In which order TensorFlow adds: the same sum in another order has other last bits.

AddN's kernel adds from left to right, but begins with the first input whose buffer it may write
to. Which one that is depends on what else is held when it runs, so that a step with another
order of operations would round otherwise. And before, Grappler sorts the inputs by their names. The
order is therefore read off the graph, and rewritten steps add in pairs.

Source: `AddNOp` in TensorFlow's aggregate_ops.cc, `CanonicalizeNode` in
common_subgraph_elimination.cc, which meta_optimizer.cc runs, `OptimizerCSE` in optimizer_cse.cc,
`IsConstantFoldable` and `ConstantFoldingOptions` in constant_folding.cc.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from checkmate_tf.trace.bodies import RUN_FUNCTIONS
from checkmate_tf.trace.operations import SOURCES, VIEWS, is_stateful, under_views

_WIDTH = 8
"""Inputs that the kernel adds at a time; nine where one is left over."""

_LARGEST_CONSTANT = 10 << 20
"""Bytes up to which the executor computes what depends on constants alone once and for all.

Grappler does so, too, but has bounds of its own (see `constants`).
"""


def groups(count: int) -> list[range]:
    """Places of inputs that the kernel adds up at once, each sum then being added to the first.

    Example:
        >>> groups(3), groups(11)
        ([range(0, 3)], [range(0, 3), range(3, 11)])
        >>> groups(9)
        [range(0, 9)]
    """
    first = count % _WIDTH
    first += _WIDTH if first < 2 else 0
    starts = range(first, count, _WIDTH)
    return [range(first), *(range(start, start + _WIDTH) for start in starts)]


def _grappler_sorts() -> bool:
    """Whether it does so with the inputs of a sum, by their names, before the sum runs."""
    asked = tf.config.optimizer.get_experimental_options()
    return not asked.get("disable_meta_optimizer") and all(
        asked.get(each, True) for each in ("common_subgraph_elimination", "arithmetic_optimization")
    )


def _as_grappler_names(tensor: Any) -> bytes:
    number = f":{tensor.value_index}" if tensor.value_index else ""
    return f"{tensor.op.name}{number}".encode()


class SumOrders:
    """The orders in which a traced function's AddN operations add their inputs."""

    def __init__(
        self, operations: Iterable[Any], sized: dict[str, Any], outputs: Iterable[Any]
    ) -> None:
        """Look at a function.

        Args:
            operations: all of the function's, each after its inputs.
            sized: the same with known shapes, by name.
            outputs: what the function returns.
        """
        self._sized = sized
        self._place: dict[str, int] = {}
        self._value: dict[str, int] = {}  # operations that compute the same have one value
        self._constant: set[str] = set()  # operations that depend on constants alone
        numbers: dict[Any, int] = {}
        for operation in operations:
            key = self._key(operation)
            self._value[operation.name] = numbers.setdefault(key, len(numbers))
            self._place[operation.name] = len(self._place)
            if self._depends_on_constants(operation):
                self._constant.add(operation.name)
        self._returned = {self._buffer(each) for each in outputs}

    def order(self, operation: Any) -> list[int]:
        """Places of the inputs of an AddN, in the order in which they are added."""
        places = list(range(len(operation.inputs)))
        if _grappler_sorts():
            places.sort(key=lambda place: _as_grappler_names(operation.inputs[place]))
        first = next((at for at, each in enumerate(places) if self._is_free(operation, each)), 0)
        places[0], places[first] = places[first], places[0]
        return places

    def _is_free(self, operation: Any, place: int) -> bool:
        """Whether nothing else holds the buffer of an input when the sum is made.

        Readers that neither wait for the sum nor are waited for may or may not be done by then,
        even in the function itself; they are taken to be.
        """
        root = self._under(operation.inputs[place])
        if root.op.type in SOURCES or self._is_kept(root):
            return False
        buffer = self._buffer(root)
        same = [each for each in operation.inputs if self._buffer(each) == buffer]
        if len(same) > 1 or buffer in self._returned:
            return False
        here = self._place[operation.name]
        later = {each for each in self._readers(root) if self._place[each.name] > here}
        return not self._leads_to_one(operation, later)

    def _depends_on_constants(self, operation: Any) -> bool:
        if not operation.inputs:
            return bool(operation.type == "Const")
        if operation.type in RUN_FUNCTIONS or is_stateful(operation):
            return False
        return all(each.op.name in self._constant for each in operation.inputs)

    def _is_kept(self, tensor: Any) -> bool:
        """Whether the executor computes `tensor` once, before the first step."""
        known = self._sized[tensor.op.name].outputs[tensor.value_index]
        size = (known.shape.num_elements() or 0) * known.dtype.size
        return tensor.op.name in self._constant and size <= _LARGEST_CONSTANT

    def _readers(self, tensor: Any) -> list[Any]:
        """Operations that read the buffer of `tensor`, through views too."""
        found = []
        pending = list(tensor.consumers())
        while pending:
            operation = pending.pop()
            found.append(operation)
            if operation.type in VIEWS:
                pending += [each for output in operation.outputs for each in output.consumers()]
        return found

    def _leads_to_one(self, operation: Any, others: set[Any]) -> bool:
        """Whether one of the `others` needs a result of `operation`."""
        last = max((self._place[each.name] for each in others), default=-1)
        seen: set[Any] = set()
        pending = [operation]
        while pending:
            for output in pending.pop().outputs:
                new = {each for each in output.consumers() if self._place[each.name] <= last} - seen
                if not others.isdisjoint(new):
                    return True
                seen |= new
                pending += new
        return False

    def _buffer(self, tensor: Any) -> tuple[int, int]:
        root = self._under(tensor)
        return self._value[root.op.name], root.value_index

    def _under(self, tensor: Any) -> Any:
        """The tensor whose buffer `tensor` shares."""
        tensor = under_views(tensor)
        while tensor.op.type == "Sum" and self._sums_over_nothing(tensor.op):
            tensor = under_views(tensor.op.inputs[0])
        return tensor

    def _sums_over_nothing(self, operation: Any) -> bool:
        """As the gradient of a broadcast that had nothing to repeat; the output is the input."""
        axes = operation.inputs[1]
        known = tf.get_static_value(self._sized[operation.name].inputs[1])
        if known is not None or axes.op.type != "BroadcastGradientArgs":
            return known is not None and not known.size
        one, other = map(tf.get_static_value, self._sized[axes.op.name].inputs)
        return one is not None and other is not None and one.tolist() == other.tolist()

    def _key(self, operation: Any) -> Any:
        """What TensorFlow compares to find operations that compute the same."""
        if is_stateful(operation) or operation.type == "Placeholder":
            return operation.name
        inputs = [(self._value[each.op.name], each.value_index) for each in operation.inputs]
        if operation.op_def.is_commutative:
            inputs.sort()
        before = sorted(self._value[each.name] for each in operation.control_inputs)
        attributes = tuple(
            (name, value.SerializeToString(deterministic=True))
            for name, value in sorted(operation.node_def.attr.items())
        )
        return operation.type, tuple(inputs), tuple(before), attributes
