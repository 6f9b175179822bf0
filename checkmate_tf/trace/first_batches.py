"""How large the tensors of a data set's next batches are, where their types leave it open."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

Shapes = tuple[tuple[int, ...], ...]
"""Of the tensors of a batch, flattened."""


def looked_at(iterator: Any, count: int) -> tuple[Shapes | None, Any]:
    """The shapes of the next `count` batches, and an iterator over the same batches.

    Each dimension is the largest of these batches. None where there are no more, or where they hold
    something else than tensors; or where the types say it all. The iterator gives those batches and
    then ends; it is `iterator` itself where that has not been moved.

    Args:
        iterator: of a data set.
        count: of batches that are taken from it.

    Example:
        >>> import tensorflow as tf
        >>> iterator = iter(tf.data.Dataset.range(10).batch(4))
        >>> shapes, again = looked_at(iterator, 1)
        >>> shapes, [each.numpy().tolist() for each in again], next(iterator).numpy().tolist()
        (((4,),), [[0, 1, 2, 3]], [4, 5, 6, 7])
    """
    specs = tf.nest.flatten(iterator.element_spec)
    if not all(isinstance(each, tf.TensorSpec) for each in specs):
        return None, iterator
    if all(each.shape.is_fully_defined() for each in specs):
        return None, iterator
    batches = [tf.nest.flatten(each) for each in itertools.islice(iterator, count)]
    if not batches:
        return None, iterator
    shapes = [tuple(tuple(each.shape) for each in batch) for batch in batches]
    return functools.reduce(largest, shapes), _again(batches, iterator.element_spec)


def largest(one: Shapes, other: Shapes) -> Shapes:
    """Of two batches of the same ranks, the larger of each dimension."""
    return tuple(tuple(map(max, first, second)) for first, second in zip(one, other, strict=True))


def _again(batches: Sequence[Sequence[Any]], element_spec: Any) -> Any:
    """An iterator over `batches`, of the type of the one that they came from."""
    specs = tf.nest.flatten(element_spec)

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def as_it_came(*leaves: Any) -> Any:
        any_size = [
            tf.raw_ops.PlaceholderWithDefault(input=leaf, shape=spec.shape)
            for leaf, spec in zip(leaves, specs, strict=True)
        ]
        return tf.nest.pack_sequence_as(element_spec, any_size)

    each_alone = [tf.data.Dataset.from_tensors(tuple(batch)) for batch in batches]
    one_by_one = functools.reduce(lambda first, second: first.concatenate(second), each_alone)
    return iter(one_by_one.map(as_it_came))
