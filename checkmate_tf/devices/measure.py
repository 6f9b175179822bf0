"""Measure what a device's allocator holds."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from checkmate_tf.trace.keras_models import is_model
from checkmate_tf.trace.sizes import tensor_bytes
from profiles.devices import default_device
from solvers.errors import CheckmateError

_SMALL = 64 * 1024


def held_bytes(device: str | None = None) -> int | None:
    """Bytes that the allocator of `device` holds now; None where it keeps no count."""
    try:
        return int(tf.config.experimental.get_memory_info(device or default_device())["current"])
    except ValueError:
        return None


def counts_small_buffers() -> bool:
    """Whether the allocator counts buffers of less than 256 KiB.

    oneDNN's for CPUs doesn't, unless TF_CPU_ALLOCATOR_USE_BFC=true replaces it by TensorFlow's own.
    """
    return _counts_small_buffers(default_device())


@functools.cache
def _counts_small_buffers(device: str) -> bool:
    with tf.device(device):
        before = held_bytes(device)
        buffers = [tf.raw_ops.Empty(shape=[_SMALL], dtype=tf.uint8) for _ in range(8)]
        after = held_bytes(device)
    del buffers
    return before is None or after is None or after - before >= 4 * _SMALL


def arriving_bytes(arguments: Any) -> int:
    """Bytes of arrays and tensors among `arguments` that are not on the device yet.

    Example:
        >>> import numpy as np, tensorflow as tf
        >>> arriving_bytes((np.zeros(1024, np.float32), {"labels": tf.zeros(1024)}))
        4096
    """
    device = default_device()
    return sum(_arriving(each, device) for each in tf.nest.flatten(arguments))


def _arriving(value: Any, device: str) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, tf.Tensor) and not value.device.endswith(device):
        return tensor_bytes(value.dtype, value.shape) or 0
    return 0


def reset_peak(device: str | None = None) -> None:
    """Let the peak of an allocator that keeps a count start again at what it holds now."""
    tf.config.experimental.reset_memory_stats(device or default_device())


def peak_bytes(device: str | None = None) -> int | None:
    """The most that it has held since its peak was last reset; None where it keeps no count."""
    try:
        return int(tf.config.experimental.get_memory_info(device or default_device())["peak"])
    except ValueError:
        return None


def measure_peak(function: Callable[..., Any], *args: Any, device: str | None = None) -> int:
    """Bytes that `device` held at most while `function(*args)` ran, what was there included.

    Args:
        function: anything that runs TensorFlow operations, a train step for instance. The
            `train_step` of a Keras model runs as `fit` runs it: as a `tf.function`, and compiled
            by XLA where the model is, not operation by operation.
        args: its arguments.
        device: "CPU:0", "GPU:0", …; by default the one that TensorFlow computes on. On a CPU with
            oneDNN on, buffers below 256 KiB count only under TF_CPU_ALLOCATOR_USE_BFC=true.

    Raises:
        CheckmateError: the device's allocator keeps no count.

    Example:
        >>> import tensorflow as tf
        >>> measure_peak(lambda: tf.ones((1024, 1024))) >= 4 * 1024 * 1024
        True
    """
    device = device or default_device()
    if held_bytes(device) is None:
        raise CheckmateError(
            "memory-not-counted",
            f"the allocator of {device} keeps no count of its memory. With TF_ENABLE_ONEDNN_OPTS=0 "
            "set TF_CPU_ALLOCATOR_USE_BFC=true before TensorFlow is imported",
        )
    return run_measured(_as_fit_runs_it(function), *args, device=device)[1]


def _as_fit_runs_it(function: Callable[..., Any]) -> Callable[..., Any]:
    model: Any = getattr(function, "__self__", None)
    is_step = getattr(function, "__name__", "") in ("train_step", "test_step", "predict_step")
    if not is_step or not is_model(model) or model.run_eagerly:
        return function
    traced: Callable[..., Any] = tf.function(function, jit_compile=model.jit_compile or None)
    return traced


def run_measured(function: Callable[..., Any], *args: Any, device: str) -> tuple[Any, int]:
    """What `function(*args)` returns, and the bytes that `device`, which counts, held at most."""
    reset_peak(device)
    result = function(*args)
    # A GPU computes behind Python's back; its peak counts when it is done.
    with tf.device(device):  # of this process alone, which may be one of several workers
        tf.raw_ops.SyncDevice()
    return result, int(tf.config.experimental.get_memory_info(device)["peak"])
