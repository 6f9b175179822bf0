"""Real data without a download: scikit-learn's handwritten digits, and Python's own source."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

from checkmate_tf.workloads.models import Workload


def batches_of(
    workload: Workload, count: int, batch: int, side: int, dtype: str = "float32"
) -> list[tuple[Any, Any]]:
    """`count` batches of inputs and labels of the workload's kind.

    Digits are enlarged to side × side × 3; the label of a pixel is the digit where there is ink,
    and 0 elsewhere. Texts are of `side` bytes, each with the bytes that follow one by one.
    """
    if workload.kind == "text":
        source = np.frombuffer(Path(argparse.__file__).read_bytes(), np.uint8).astype(np.int32)
        starts = np.random.default_rng(0).integers(len(source) - side, size=(count, batch))
        texts = source[starts[..., None] + np.arange(side + 1)]
        return [(tf.constant(each[:, :-1]), tf.constant(each[:, 1:])) for each in texts]
    digits = load_digits()
    picked = np.random.default_rng(0).permutation(len(digits.images))
    batches = []
    for number in range(count):
        chosen = np.take(picked, range(number * batch, (number + 1) * batch), mode="wrap")
        small = tf.constant(digits.images[chosen, :, :, None] / 16.0, dtype)
        images = tf.repeat(tf.cast(tf.image.resize(small, (side, side)), dtype), 3, axis=-1)
        labels = tf.constant(digits.target[chosen], tf.int32)
        if workload.kind == "pixels":
            labels = tf.where(images[..., 0] > 0.5, labels[:, None, None], 0)
        batches.append((images, labels))
    return batches
