"""A callback from a running graph whose batch is larger than planned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf


def call_if_larger(batch: Any, size: int, callback: Callable[[int], None]) -> None:
    """Let the function that is being traced call `callback` with the size of a larger batch.

    Args:
        batch: a tensor whose first dimension is known only when the function runs.
        size: up to it, nothing happens.
        callback: is called while the function runs, from another thread.
    """

    def call(found: Any) -> Any:
        callback(int(found))
        return np.bool_(True)

    found = tf.shape(batch)[0]
    tf.cond(
        found > size,
        lambda: tf.numpy_function(call, [found], tf.bool),
        lambda: tf.constant(False),
    )
