"""Measure what a device's allocator holds."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from checkmate_tf.trace.keras_models import is_model
from checkmate_tf.trace.sizes import tensor_bytes
from profiles.devices import default_device
from solvers.errors import CheckmateError

_LIMIT = "TF_CPU_BFC_MEM_LIMIT_IN_MB"
"""The environment variable that limits the CPU's allocator."""

_GROWTH = "TF_FORCE_GPU_ALLOW_GROWTH"
"""The environment variable that lets the allocators of GPUs grow, "true", or not, "false"."""

_SMALL = 64 * 1024

_MEMORY = Path("/proc/meminfo")

_CONTAINER_LIMIT, _CONTAINER_USE = (
    Path("/sys/fs/cgroup") / f"memory.{name}" for name in ("max", "current")
)


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


def free_bytes() -> int | None:
    """Bytes that a CPU could still be given; None on other devices, and where nobody says it."""
    if not default_device().startswith("CPU"):
        return None
    try:
        found = re.search(r"^MemAvailable:\s*(\d+) kB", _MEMORY.read_text(), re.MULTILINE)
        known = [int(found[1]) << 10] if found else []
    except OSError:
        known = []
    with suppress(OSError, ValueError):  # no container, or one without a limit ("max")
        limit, used = (int(each.read_text()) for each in (_CONTAINER_LIMIT, _CONTAINER_USE))
        known.append(max(0, limit - used))
    return min(known, default=None)


def allocator_limit() -> int | None:
    """Bytes that the CPU's allocator may have in all; None without a limit, and elsewhere."""
    if default_device().startswith("CPU"):
        with suppress(KeyError, ValueError):
            return int(os.environ[_LIMIT]) << 20
    return None


def peak_bytes(device: str | None = None) -> int | None:
    """The most that it has held since its peak was last reset; None where it keeps no count."""
    try:
        return int(tf.config.experimental.get_memory_info(device or default_device())["peak"])
    except ValueError:
        return None


def reserve(size: int) -> None:
    """Let the allocator take `size` bytes as one piece, before it takes many small ones.

    Left alone it takes ever larger regions, and no buffer spans the border between two. On a CPU
    memory that nobody writes to costs nothing. A GPU's allocator takes all that there is anyway,
    unless it was told to grow.
    """
    if default_device().startswith("CPU") or _grows_on_gpus():
        with suppress(tf.errors.ResourceExhaustedError):
            tf.raw_ops.Empty(shape=[size >> 20, 1 << 20], dtype=tf.uint8)


def _grows_on_gpus() -> bool:
    """Whether allocators of GPUs take memory as it is needed: the environment has the last word."""
    asked = os.environ.get(_GROWTH, "")
    if asked in ("true", "false"):
        return asked == "true"
    every = tf.config.list_physical_devices("GPU")
    return any(tf.config.experimental.get_memory_growth(each) for each in every)


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
    tf.config.experimental.reset_memory_stats(device)
    result = function(*args)
    # A GPU computes behind Python's back; its peak counts when it is done.
    with tf.device(device):  # of this process alone, which may be one of several workers
        tf.raw_ops.SyncDevice()
    return result, int(tf.config.experimental.get_memory_info(device)["peak"])
