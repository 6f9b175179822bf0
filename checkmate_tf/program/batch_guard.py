"""A callback from a running graph whose batch is larger than planned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

Sizes = Sequence[Sequence[int]]


def call_if_larger(tensors: Sequence[Any], most: Sizes, callback: Callable[[Sizes], None]) -> None:
    """Let the function that is being traced call `callback` with the sizes of larger tensors.

    Args:
        tensors: their sizes are known only when the function runs.
        most: of each, the first dimensions, or all: up to these sizes, nothing happens.
        callback: is called while the function runs, from another thread, with as many dimensions.
    """
    ranks = [len(each) for each in most]

    def call(found: Any) -> Any:
        callback([each.tolist() for each in np.split(found, np.cumsum(ranks)[:-1])])
        return np.bool_(True)

    # Sizes lie in the host's memory. What a GPU computes of them each step would wait for.
    with tf.device("CPU:0"):
        found = tf.concat([tf.shape(x)[:rank] for x, rank in zip(tensors, ranks, strict=True)], 0)
        is_larger = tf.reduce_any(found > [size for shape in most for size in shape])
        tf.cond(
            is_larger,
            lambda: tf.numpy_function(call, [found], tf.bool),
            lambda: tf.constant(False),
        )
