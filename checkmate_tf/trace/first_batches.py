"""How large the tensors of a data set's next batches are, where their types leave it open."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

Shapes = tuple[tuple[int, ...], ...]
"""Of the tensors of a batch, flattened."""

_TENSORS = np.ndarray, tf.Tensor


class FirstBatches:
    """Looks at the first batches of data sets, and hands them on.

    It is one more than are trained on at once: the first one of a shuffled data set may be the
    smaller batch that is left over.

    Example:
        >>> import tensorflow as tf
        >>> iterator, batches = iter(tf.data.Dataset.range(10).batch(4)), FirstBatches()
        >>> shapes, first = batches.looked_at(iterator, 1)
        >>> shapes, [each.numpy().tolist() for each in first]
        (((4,),), [[0, 1, 2, 3]])
        >>> [each.numpy().tolist() for each in batches.next_ones(iterator, 1)]
        [[4, 5, 6, 7]]
        >>> batches.next_ones(iterator, 1) is iterator
        True
    """

    def __init__(self) -> None:
        """No data set has been looked at."""
        self._left: list[list[Any]] = []  # batches that were looked at and are to come
        self._iterator: Callable[[], Any] = lambda: None

    def looked_at(self, iterator: Any, count: int) -> tuple[Shapes | None, Any]:
        """The shapes of the next batches, and an iterator over `count` of them, or what is left.

        Each dimension is the largest of these batches. None where there are no more, or where they
        hold something else than tensors, or where their types say it all: then nothing is taken.

        Args:
            iterator: of a data set.
            count: of batches that are trained on at once.
        """
        specs = tf.nest.flatten(iterator.element_spec)
        if not all(isinstance(each, tf.TensorSpec) for each in specs):
            return None, iterator
        if all(each.shape.is_fully_defined() for each in specs):
            return None, iterator
        left = self._those_left(iterator)
        batches = [*left, *_taken(iterator, count + 1 - len(left))]
        if not batches:
            return None, iterator
        self._left, self._iterator = batches[count:], weakref.ref(iterator)
        return shapes_of(batches), _again(batches[:count], iterator.element_spec)

    def next_ones(self, iterator: Any, count: int) -> Any:
        """An iterator over the next `count` batches at least, those that were looked at first."""
        batches = self._those_left(iterator)
        if not batches:
            return iterator
        batches += _taken(iterator, count - len(batches))
        return _again(batches, iterator.element_spec)

    def _those_left(self, iterator: Any) -> list[list[Any]]:
        left = self._left if self._iterator() is iterator else []
        self._left = []
        return left


def repeatable(iterator: Any, count: int) -> Callable[[], Any] | None:
    """Gives iterators over the next `count` batches, or what is left, as often as it is called.

    They are taken out of `iterator` now. None where they hold something else than tensors: then
    nothing is taken.

    Example:
        >>> import tensorflow as tf
        >>> iterator = iter(tf.data.Dataset.range(10).batch(4))
        >>> batches = repeatable(iterator, 1)
        >>> [[each.numpy().tolist() for each in batches()] for _ in range(2)]
        [[[0, 1, 2, 3]], [[0, 1, 2, 3]]]
        >>> next(iterator).numpy().tolist()
        [4, 5, 6, 7]
    """
    if isinstance(iterator, list):  # that of `train_on_batch`
        return lambda: iterator
    if not isinstance(iterator, tf.data.Iterator):
        return None
    if not all(isinstance(each, tf.TensorSpec) for each in tf.nest.flatten(iterator.element_spec)):
        return None
    batches = _taken(iterator, count)
    return (lambda: _again(batches, iterator.element_spec)) if batches else lambda: iterator


def _taken(iterator: Any, count: int) -> list[list[Any]]:
    return [tf.nest.flatten(each) for each in itertools.islice(iterator, max(0, count))]


def shapes_of(batches: Iterable[Any]) -> Shapes:
    """Of the tensors of a batch, each dimension the largest of these batches.

    Example:
        >>> import numpy as np
        >>> shapes_of([[np.zeros((4, 2))], [np.zeros((3, 5))]])
        ((4, 5),)
    """
    shapes = (
        tuple(tuple(each.shape) for each in tf.nest.flatten(batch) if isinstance(each, _TENSORS))
        for batch in batches
    )
    return functools.reduce(largest, shapes)


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
    one_by_one = functools.reduce(tf.data.Dataset.concatenate, each_alone)
    return iter(one_by_one.map(as_it_came))
