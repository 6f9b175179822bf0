"""Real images without a download: the handwritten digits that scikit-learn ships."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits


def digit_batches(
    count: int, batch: int, side: int, dense: bool = False, dtype: str = "float32"
) -> list[tuple[Any, Any]]:
    """`count` batches of digits, enlarged to side × side × 3, with their labels.

    With `dense`, the label of a pixel is the digit where there is ink and 0 elsewhere.
    """
    digits = load_digits()
    picked = np.random.default_rng(0).permutation(len(digits.images))
    batches = []
    for number in range(count):
        chosen = np.take(picked, range(number * batch, (number + 1) * batch), mode="wrap")
        small = tf.constant(digits.images[chosen, :, :, None] / 16.0, dtype)
        images = tf.repeat(tf.cast(tf.image.resize(small, (side, side)), dtype), 3, axis=-1)
        labels = tf.constant(digits.target[chosen], tf.int32)
        if dense:
            labels = tf.where(images[..., 0] > 0.5, labels[:, None, None], 0)
        batches.append((images, labels))
    return batches
