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
    """`count` batches of inputs and labels of the workload's kind."""
    if workload.kind == "text":
        return text_batches(count, batch, side)
    return digit_batches(count, batch, side, workload.kind == "pixels", dtype)


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


def text_batches(count: int, batch: int, length: int) -> list[tuple[Any, Any]]:
    """`count` batches of texts of `length` bytes, each with the bytes that follow one by one."""
    source = np.frombuffer(Path(argparse.__file__).read_bytes(), np.uint8).astype(np.int32)
    starts = np.random.default_rng(0).integers(len(source) - length, size=(count, batch))
    texts = source[starts[..., None] + np.arange(length + 1)]
    return [(tf.constant(each[:, :-1]), tf.constant(each[:, 1:])) for each in texts]
