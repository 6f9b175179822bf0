"""Which arguments of a step carry the batch, and what their types are for batches of any size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def shape_of(value: Any) -> tuple[int | None, ...]:
    """Of an array; () of what is none, or has no dimensions or an unknown number of them."""
    if not isinstance(value, tf.Tensor | np.ndarray) or value.shape == tf.TensorShape(None):
        return ()
    return tuple(value.shape)


class BatchedArguments:
    """What the calls of one step have told about its arguments.

    An argument that was as long as the batch size that the user named carries the batch, also
    in later calls. Until there is one, it is the largest argument, and all that are as long.

    Example:
        >>> import tensorflow as tf
        >>> batched = BatchedArguments()
        >>> weights, images = tf.ones(10), tf.ones((1024, 8))
        >>> batched.batch_of(((weights, images), {}), 1024).shape.as_list()
        [1024, 8]
        >>> batched.batch_of(((weights, images[:10]), {}), 1024).shape.as_list()
        [10, 8]
        >>> batched.relaxed(((weights, images[:10]), {}), 1024)[0][1].shape.as_list()
        [None, 8]
    """

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._places: dict[int, frozenset[int]] = {}  # by the number of arguments

    def batch_of(self, arguments: Arguments, batch_size: int | None) -> Any:
        """An argument whose first dimension is the batch; None if there is none.

        Args:
            arguments: of a call.
            batch_size: what steps are planned for.
        """
        leaves = _leaves(arguments)
        arrays = {place: each for place, each in enumerate(leaves) if shape_of(each)}
        places = self._learned(arrays, len(leaves), batch_size) & arrays.keys()
        if places:
            return arrays[min(places)]
        return max(arrays.values(), key=_likely, default=None)

    def relaxed(self, arguments: Arguments, batch_size: int) -> Arguments:
        """`arguments` as types for any batch up to `batch_size`, which share a trace."""
        places = self.places(arguments, batch_size)

        def relaxed(place: int, value: Any) -> Any:
            shape = shape_of(value) if place in places else ()
            size = shape[0] if shape else None
            if size is None or size > batch_size:
                return value
            return tf.TensorSpec([None, *value.shape[1:]], value.dtype)

        leaves = tf.nest.flatten(arguments)
        types = [relaxed(place, value) for place, value in enumerate(leaves)]
        packed: Arguments = tf.nest.pack_sequence_as(arguments, types)
        return packed

    def places(self, arguments: Arguments, batch_size: int | None) -> frozenset[int]:
        """Which of the flat arguments carry the batch, by number."""
        batch = self.batch_of(arguments, batch_size)
        leaves = _leaves(arguments)
        known = self._places.get(len(leaves), range(len(leaves)))
        alike = None if batch is None else shape_of(batch)[:1]
        return frozenset(place for place in known if shape_of(leaves[place])[:1] == alike)

    def _learned(
        self, arrays: dict[int, Any], count: int, batch_size: int | None
    ) -> frozenset[int]:
        """Places of the arguments that carry the batch, as far as known after this call."""
        length = {place: shape_of(each)[0] for place, each in arrays.items()}
        known = self._places.get(count)
        if known is None:
            known = frozenset(place for place in length if length[place] == batch_size)
        else:
            # What stays as it is while another argument gets shorter is no batch.
            others = frozenset(place for place in known if length.get(place) != batch_size)
            known = others or known
        if known and batch_size is not None:
            self._places[count] = known
        return known


def _leaves(arguments: Arguments) -> list[Any]:
    """The flat arguments; of values for several replicas, that of the first one."""
    return list(map(_on_a_replica, tf.nest.flatten(arguments)))


def _on_a_replica(value: Any) -> Any:
    is_one_for_each = isinstance(value, tf.distribute.DistributedValues)
    return value.values[0] if is_one_for_each and not isinstance(value, tf.Variable) else value


def _likely(value: Any) -> tuple[bool, int]:
    """The higher, the more likely `value` is to carry the batch: of unknown length, or large."""
    shape = shape_of(value)
    return shape[0] is None, math.prod(size or 1 for size in shape)


def narrowed(signature: Any, arguments: Arguments, places: frozenset[int]) -> Any:
    """`signature` with every size that is no batch as `arguments` have it; None if it says all.

    Args:
        signature: the `input_signature` of a tf.function, or None.
        arguments: of a call.
        places: numbers of the flat ones that carry the batch.
    """
    if signature is None:
        return None
    specs = tf.nest.flatten(signature)
    values = tf.nest.flatten(arguments[0][: len(signature)])
    if len(specs) != len(values):
        return None
    found = [
        _narrowed(spec, value, place in places)
        for place, (spec, value) in enumerate(zip(specs, values, strict=True))
    ]
    return None if found == specs else tf.nest.pack_sequence_as(signature, found)


def _narrowed(spec: Any, value: Any, is_batch: bool) -> Any:
    if not isinstance(spec, tf.TensorSpec) or spec.shape.is_fully_defined():
        return spec
    if not isinstance(value, tf.Tensor | np.ndarray):
        return spec
    actual = tf.TensorShape(value.shape)
    if not actual.is_compatible_with(spec.shape) or actual.rank is None:
        return spec
    sizes = actual.as_list()
    if sizes and is_batch and (spec.shape.rank is None or spec.shape[0] is None):
        sizes[0] = None
    return tf.TensorSpec(sizes, spec.dtype, spec.name)
