"""Bytes of tensors; where a size depends on data, a guess from what the operation reads.

Data decide how many rows a mask leaves, or which expert gets which example. That there are no more
of them than before is the guess, and it is handed on: what is computed of so many rows has as many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from checkmate_tf.trace.depth_first import finish, tensor_key
from checkmate_tf.trace.operations import VIEWS
from checkmate_tf.trace.sizes import tensor_bytes
from checkmate_tf.trace.tensor_lists import list_bytes
from profiles.operation_facts import facts

_SHORT_BYTES = 128
"""Of short lists: of axes, or of what `tf.debugging.enable_check_numerics` looks at."""


@dataclass(frozen=True)
class _Guess:
    """Bytes of a tensor, and its number of rows."""

    bytes: int
    rows: int


class Sizes:
    """Bytes of a function's tensors.

    Attributes:
        guessed: operations whose outputs' sizes depend on data, by name.
    """

    def __init__(self, sized: dict[str, Any]) -> None:
        """Look at operations with known shapes, by name."""
        self.guessed: dict[str, Any] = {}
        self._sized = sized
        self._lists: dict[str, tuple[int | None, ...]] = {}
        self._guesses: dict[tuple[str, int], _Guess] = {}

    def of(self, tensor: Any) -> int:
        """Bytes of `tensor`, guessed where data decide."""
        size = self._known(tensor)
        if size is not None:
            return size
        if facts(tensor.op.type).rows == "short":
            return _SHORT_BYTES
        self.guessed[tensor.op.name] = tensor.op
        return self._guess(tensor).bytes

    def shape(self, tensor: Any) -> tf.TensorShape:
        """What is known of the shape of `tensor`."""
        return self._sized[tensor.op.name].outputs[tensor.value_index].shape

    def _known(self, tensor: Any) -> int | None:
        if tensor.dtype != tf.variant:
            return tensor_bytes(tensor.dtype, self.shape(tensor))
        operation = self._sized[tensor.op.name]
        if operation.name not in self._lists:
            self._lists[operation.name] = list_bytes(
                operation, lambda each: tensor_bytes(each.dtype, each.shape)
            )
        known: int | None = self._lists[operation.name][tensor.value_index]
        return known

    def _guess(self, tensor: Any) -> _Guess:
        finish(tensor, self._guesses, tensor_key, self._needed_for, self._finish)
        return self._guesses[tensor_key(tensor)]

    def _needed_for(self, tensor: Any) -> list[Any]:
        return list(tensor.op.inputs) if self._known(tensor) is None else []

    def _finish(self, tensor: Any) -> None:
        size = self._known(tensor)
        if size is None:
            guess = self._guess_from_inputs(tensor)
        else:
            shape = self.shape(tensor)
            guess = _Guess(size, shape[0] if shape.rank else 0)
        self._guesses[tensor_key(tensor)] = guess

    def _guess_from_inputs(self, tensor: Any) -> _Guess:
        operation = tensor.op
        read = [self._guesses[tensor_key(each)] for each in operation.inputs]
        most = max((each.bytes for each in read), default=0)
        row = self._bytes_of_a_row(tensor)
        if row is None:
            return _Guess(most, max((each.rows for each in read), default=0))
        rule = facts(operation.type).rows
        if operation.type in VIEWS:
            rows = read[tensor.value_index].bytes // row
        elif rule == "divided":  # its parts together are what it is given
            rows = -(-read[0].rows // len(operation.outputs))
        elif rule == "stitched":
            rows = sum(each.rows for each in read[len(read) // 2 :])
        elif rule == "joined":
            rows = sum(each.bytes for each in read[:-1]) // row
        elif rule == "true":  # the places of all elements that are not zero
            rows = read[0].bytes // operation.inputs[0].dtype.size
        elif rule == "indexed":  # as many as there are places
            rows = read[1].rows
        else:
            rows = max((each.rows for each in read), default=0)
        return _Guess(rows * row, rows)

    def _bytes_of_a_row(self, tensor: Any) -> int | None:
        """Of a tensor of which one dimension alone is unknown: bytes for each of what it counts."""
        shape = self.shape(tensor)
        if tensor.dtype == tf.variant or shape.rank is None:
            return None
        known = [each for each in shape.as_list() if each is not None]
        if len(known) != shape.rank - 1:
            return None
        return tensor_bytes(tensor.dtype, tf.TensorShape(known)) or None
