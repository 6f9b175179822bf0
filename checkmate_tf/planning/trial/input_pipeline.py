"""Made-up batches for a trial run, from an input pipeline like that of `fit`.

The pipeline makes batches while steps run. One that is made amid a step's activations stays there
for the next steps, and cuts the free memory in pieces: these hold more than steps whose inputs are
there from the beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def batches_like(batch: Sequence[Any]) -> Any:
    """An iterator over equal batches, made as Keras makes those of arrays.

    Args:
        batch: one of them, in memory that is not to count; it stays there.

    Example:
        >>> import tensorflow as tf
        >>> batches = batches_like([tf.ones((8, 2))])
        >>> [float(tf.reduce_sum(next(batches)[0])) for _ in range(3)]
        [16.0, 16.0, 16.0]
    """
    stacked = tuple(tf.expand_dims(each, 0) for each in batch)  # of the same memory

    def gathered(*arrays: Any) -> tuple[Any, ...]:
        return tuple(tf.gather(each, 0) for each in arrays)

    dataset = tf.data.Dataset.from_tensors(stacked).repeat()
    dataset = dataset.map(gathered, num_parallel_calls=tf.data.AUTOTUNE)
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return iter(dataset.with_options(options).prefetch(tf.data.AUTOTUNE))
