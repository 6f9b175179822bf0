"""The allocator's memory as a new process finds it, whatever other tests have left."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from checkmate_tf.devices.layout import fill_gaps
from checkmate_tf.devices.measure import counts_small_buffers, held_bytes

LARGEST, SMALLEST = 1 << 27, 1 << 12
"""Bytes of the gaps that are filled: the largest is more than any of these tests holds."""
MOST = 1 << 16
"""Gaps; so many have never been seen."""


@contextmanager
def memory_in_one_piece() -> Iterator[None]:
    """Meanwhile all free memory of the CPU is one piece, and no garbage waits to be freed.

    A buffer gets a free piece of up to twice its size whole. So what a step holds depends on the
    pieces that earlier tests have left free.

    Example:
        >>> import tensorflow as tf
        >>> with memory_in_one_piece():
        ...     before = held_bytes()
        ...     tensor = tf.ones((1024, 1024))
        ...     held_bytes() - before == 4 * 1024 * 1024
        True
    """
    gc.collect()
    is_counted = held_bytes() is not None and counts_small_buffers()
    fillers = list(fill_gaps(LARGEST, SMALLEST, MOST)) if is_counted else []
    yield
    fillers.clear()
