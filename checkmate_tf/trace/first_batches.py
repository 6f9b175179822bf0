"""How large the tensors of a data set's next batches are, where their types leave it open."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from checkmate_tf.trace.batch_feed import Batch, BatchFeed

Shapes = tuple[tuple[int, ...], ...]
"""Of the tensors of a batch, flattened."""

_TENSORS = np.ndarray, tf.Tensor


class FirstBatches:
    """Looks at the first batches of data sets, and hands them on.

    Of a new data set it is one more than are trained on at once: the first one of a shuffled data
    set may be the smaller batch that is left over.

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
        self._left: list[Batch] = []  # that were looked at and are to come
        self._iterator: Callable[[], Any] = lambda: None
        self._feed = BatchFeed()

    def looked_at(self, iterator: Any, count: int, ahead: bool = True) -> tuple[Shapes | None, Any]:
        """The shapes of the next batches, and an iterator over `count` of them, or what is left.

        Each dimension is the largest of these batches. None where there are no more, or where they
        hold something else than tensors, or where their types say it all: then nothing is taken.

        Args:
            iterator: of a data set.
            count: of batches that are trained on at once.
            ahead: look at one more.
        """
        if not _holds_tensors(iterator):
            return None, iterator
        specs = tf.nest.flatten(iterator.element_spec)
        if all(each.shape.is_fully_defined() for each in specs):
            return None, iterator
        left = self._those_left(iterator)
        batches = [*left, *_taken(iterator, count + ahead - len(left))]
        if not batches:
            return None, iterator
        self._left, self._iterator = batches[count:], weakref.ref(iterator)
        return shapes_of(batches), self._feed.over(batches[:count], iterator.element_spec)

    def next_ones(self, iterator: Any, count: int) -> Any:
        """An iterator over the next `count` batches at least, those that were looked at first."""
        batches = self._those_left(iterator)
        if not batches:
            return iterator
        batches += _taken(iterator, count - len(batches))
        return self._feed.over(batches, iterator.element_spec)

    def repeatable(self, iterator: Any, count: int) -> Callable[[], Any] | None:
        """Gives iterators over the next `count` batches, or what is left, as often as it is called.

        They are taken out of `iterator` now. None where they hold something else than tensors: then
        nothing is taken.

        Example:
            >>> import tensorflow as tf
            >>> iterator = iter(tf.data.Dataset.range(10).batch(4))
            >>> batches = FirstBatches().repeatable(iterator, 1)
            >>> [[each.numpy().tolist() for each in batches()] for _ in range(2)]
            [[[0, 1, 2, 3]], [[0, 1, 2, 3]]]
            >>> next(iterator).numpy().tolist()
            [4, 5, 6, 7]
        """
        if isinstance(iterator, list):  # that of `train_on_batch`
            return lambda: iterator
        if not isinstance(iterator, tf.data.Iterator) or not _holds_tensors(iterator):
            return None
        batches, spec = _taken(iterator, count), iterator.element_spec
        return (lambda: self._feed.over(batches, spec)) if batches else lambda: iterator

    def _those_left(self, iterator: Any) -> list[Batch]:
        left = self._left if self._iterator() is iterator else []
        self._left = []
        return left


def sizes_vary(iterator: Any) -> bool:
    """Whether later batches may be larger than the first ones in more than their number.

    As texts are that `padded_batch` fills up.

    Example:
        >>> import tensorflow as tf
        >>> numbers = tf.data.Dataset.range(3)
        >>> texts = numbers.map(lambda length: tf.zeros([length])).padded_batch(2)
        >>> sizes_vary(iter(numbers.batch(2))), sizes_vary(iter(texts))
        (False, True)
    """
    if not isinstance(iterator, tf.data.Iterator) or not _holds_tensors(iterator):
        return False
    shapes = [each.shape for each in tf.nest.flatten(iterator.element_spec)]
    return any(each.rank is None or not each[1:].is_fully_defined() for each in shapes)


def _holds_tensors(iterator: Any) -> bool:
    specs = tf.nest.flatten(iterator.element_spec)
    return all(isinstance(each, tf.TensorSpec) for each in specs)


def _taken(iterator: Any, count: int) -> list[Batch]:
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
