"""Batches that are there already, handed to a train function, which takes them from an iterator.

A data set of them would do as well, but to make one takes as long as a small step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

Batch = Sequence[Any]
"""Its tensors, flattened."""


class BatchFeed:
    """Gives an iterator over some batches, then over others: the same one, if it was not used up.

    They go through a queue, with a mark after the last one at which the iterator ends.

    Example:
        >>> import tensorflow as tf
        >>> feed, spec = BatchFeed(), tf.TensorSpec([None], tf.int32)
        >>> first = next(feed.over([[tf.constant([1, 2])], [tf.constant([3])]], spec))
        >>> first.numpy().tolist(), [each.numpy().tolist() for each in feed.over([[[4]]], spec)]
        ([1, 2], [[4]])
    """

    def __init__(self) -> None:
        """There is no iterator yet."""
        self._spec: Any = None
        self._queue: Any = None
        self._iterator: Any = None

    def over(self, batches: Sequence[Batch], element_spec: Any) -> Any:
        """An iterator of elements of this type; it ends after these batches.

        What an iterator that was given before has not handed out yet is lost.
        """
        specs = tf.nest.flatten(element_spec)
        with tf.device("CPU:0"):
            if self._spec != element_spec or not self._taken_out():
                self._spec = element_spec
                self._queue = tf.queue.FIFOQueue(-1, [tf.bool, *(each.dtype for each in specs)])
                self._iterator = _from(self._queue, element_spec)
            for batch in batches:
                self._queue.enqueue([True, *batch])
            self._queue.enqueue([False, *(tf.zeros([], each.dtype) for each in specs)])
        return self._iterator

    def _taken_out(self) -> int:
        """Take out what was not handed out, the mark included; how much that was.

        It is nothing where the iterator has come to its end.
        """
        left = int(self._queue.size())
        for _ in range(left):
            self._queue.dequeue()
        return left


def _from(queue: Any, element_spec: Any) -> Any:
    """An iterator over what is put into `queue`, up to the mark."""
    specs = tf.nest.flatten(element_spec)

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def taken(_: Any) -> Any:
        return tuple(queue.dequeue())

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def as_it_came(_: Any, *leaves: Any) -> Any:
        for leaf, spec in zip(leaves, specs, strict=True):
            leaf.set_shape(spec.shape)
        return tf.nest.pack_sequence_as(element_spec, leaves)

    data = tf.data.Dataset.from_tensors(0).repeat().map(taken)
    data = data.take_while(lambda is_batch, *_: is_batch).map(as_it_came)
    options = tf.data.Options()
    options.autotune.enabled = False  # no batch is taken before it is asked for
    options.experimental_optimization.apply_default_optimizations = False
    return iter(data.with_options(options))
