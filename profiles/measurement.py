"""Run one operation on a device, and see how long it takes and what it needs beside its output.

The operation runs in a graph, as in a train step, on random inputs of valid range.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from profiles.devices import check_device
from profiles.kernels import Kernel, repeats_kept
from profiles.operation import Operation
from profiles.profile import Measurement
from profiles.random_inputs import NotMeasurableError

__all__ = ["Measurement", "NotMeasurableError", "measure"]

_LONG_SERIES = 5e-3
"""Seconds that a series of runs should take, so that the clock and the call don't matter."""

_MOST_RUNS = 64
_ENOUGH = 0.05
"""Seconds after which an operation has been measured for long enough, given its repeats."""

_LEAST = 1e-7
"""Seconds; TensorFlow folds operations on shapes into constants, but none may seem free."""


def measure(operation: Operation, device: str = "CPU:0", repeats: int = 5) -> Measurement:
    """Measure `operation` on `device`.

    What one run takes is what a series of runs in one graph takes longer than a single run,
    divided by the difference: the launch of a function cancels out. It is the median over at
    least `repeats` such pairs after a warm-up; short operations are repeated more often.

    Raises:
        NotMeasurableError: it is stateful, works on handles or calls functions, or its inputs
            depend on data.
        CheckmateError: TensorFlow does not see such a device; it would compute on another one.

    Example:
        >>> from profiles.operation import TensorSize
        >>> image = TensorSize("float32", (1, 8, 8, 4))
        >>> measure(Operation("Relu", (image,), (image,), (("T", "float32"),))).seconds > 0
        True
    """
    check_device(device)
    with repeats_kept():
        kernel = Kernel(operation, device)
        single = kernel.function(1)
        workspace = _workspace(single, operation, device, repeats)
        once = min(_seconds(single, device) for _ in range(2))
        runs = 1 + min(_MOST_RUNS, math.ceil(_LONG_SERIES / once))
        series = kernel.function(runs)
        differences: list[float] = []
        end = time.perf_counter() + _ENOUGH
        while len(differences) < repeats or (
            len(differences) < 10 * repeats and time.perf_counter() < end
        ):
            longer, shorter = _seconds(series, device), _seconds(single, device)
            differences.append((longer - shorter) / (runs - 1))
    return Measurement(max(_LEAST, statistics.median(differences)), workspace)


def _seconds(run: Callable[[], Any], device: str) -> float:
    start = time.perf_counter()
    outputs = run()
    if not device.startswith("CPU"):
        tf.test.experimental.sync_devices()  # others compute behind Python's back
    seconds = time.perf_counter() - start
    del outputs
    return seconds


def _workspace(
    run: Callable[[], Any], operation: Operation, device: str, repeats: int
) -> int | None:
    """The allocator's peak beyond inputs and outputs; None where it keeps no count."""
    output_bytes = sum(_rounded(each.bytes) for each in operation.outputs)
    seen: list[int] = []
    for _ in range(repeats):
        before = _reset(device)
        if before is None:
            return None
        outputs = run()
        if not device.startswith("CPU"):
            tf.test.experimental.sync_devices()
        peak = tf.config.experimental.get_memory_info(device)["peak"]
        seen.append(max(0, peak - before - output_bytes))
        del outputs
    # A buffer that something else frees late looks like workspace; it does not every time.
    return min(seen)


def _rounded(size: int) -> int:
    """The least that an allocator takes for `size` bytes."""
    return -(-size // 64) * 64


def _reset(device: str) -> int | None:
    """Forget the peak; the bytes held now, or None where the allocator keeps no count."""
    try:
        tf.config.experimental.reset_memory_stats(device)
        return int(tf.config.experimental.get_memory_info(device)["current"])
    except ValueError:
        return None
