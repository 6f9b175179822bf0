"""The allocator's memory as a new process finds it, whatever other tests have left."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

from checkmate_tf.memory.layout import address_of
from checkmate_tf.memory.measure import counts_small_buffers, held_bytes

REGION = 1 << 28
"""Bytes of the one free piece, more than any test takes."""
SMALLEST = 1 << 12


@contextmanager
def memory_in_one_piece() -> Iterator[None]:
    """Meanwhile all free memory of the CPU is one piece, and no garbage waits to be freed.

    A buffer gets a free piece of up to twice its size whole. So what a step holds depends on the
    pieces that earlier tests left free: they are filled, from the largest to the smallest.

    Example:
        >>> from checkmate_tf.memory.measure import held_bytes
        >>> with memory_in_one_piece():
        ...     before = held_bytes()
        ...     tensor = tf.ones((1024, 1024))
        ...     held_bytes() - before == 4 * 1024 * 1024
        True
    """
    gc.collect()
    is_counted = held_bytes("CPU:0") is not None and counts_small_buffers()
    fillings, size = [], REGION // 2
    region = address_of(_empty(REGION))
    while is_counted and size >= SMALLEST:
        filling = _empty(size)
        if region <= address_of(filling) < region + REGION:
            size //= 2
        else:
            fillings.append(filling)
        del filling
    yield
    fillings.clear()


def _empty(size: int) -> tf.Tensor:
    with tf.device("CPU:0"):
        return tf.raw_ops.Empty(shape=[size], dtype=tf.uint8)
