"""Run one operation on a device, and see how long it takes and what it needs beside its output.

It is timed in a graph, as in a train step, on random inputs of valid range.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from profiles.devices import check_device
from profiles.exhausted import bytes_asked_for
from profiles.measure.full_memory import too_full_for
from profiles.measure.kernels import Kernel, repeats_kept
from profiles.measure.random_inputs import NotMeasurableError
from profiles.operation import Operation
from profiles.profile import SHORTEST, Measurement

__all__ = ["Measurement", "NotMeasurableError", "measure", "measure_workspace"]

_LONG = 20e-3
"""Seconds of an operation beside which the call of a function is less than a hundredth."""

_LONG_SERIES = 5e-3
"""Seconds that a series of short operations should take, for the clock's sake."""

_MOST_RUNS = 64
_ENOUGH = 0.05
"""Seconds after which an operation has been measured for long enough, given its repeats."""


def measure(operation: Operation, device: str = "CPU:0", repeats: int = 5) -> Measurement:
    """Measure `operation` on `device`.

    What one run takes is what a series of runs in one graph takes longer than a single run,
    divided by the difference: the call of a function cancels out. Beside an operation of 20 ms
    or more it does not matter, and is left in. The time is the median over at least `repeats`
    after a warm-up; short operations are repeated more often.

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
        single()
        runs = [_run(single, device) for _ in range(repeats)]
        seconds = statistics.median(each.seconds for each in runs)
        if seconds < _LONG:
            seconds = _seconds_of_one(kernel, single, seconds, device, repeats)
    return Measurement(max(SHORTEST, seconds), _workspace(runs))


def measure_workspace(operation: Operation, device: str = "CPU:0", repeats: int = 2) -> int | None:
    """The workspace alone, as `measure` finds it, in a fraction of the time.

    What the numbers are, and whether there is a graph around the kernel, makes no difference to it.
    Where the device has no memory for it, it is as much as the kernel asked for in vain.

    Raises:
        NotMeasurableError, CheckmateError: as `measure` does.

    Example:
        >>> from profiles.operation import TensorSize
        >>> image = TensorSize("float32", (1, 8, 8, 4))
        >>> measure_workspace(Operation("Relu", (image,), (image,))) in (0, None)
        True
    """
    check_device(device)
    single = Kernel(operation, device, equal=True).once()
    first = None
    try:
        # The first run may need more than the others, but none needs less than nothing.
        first = _run(single, device).workspace
        if not first:
            return first
        fillers = too_full_for(first, sum(each.bytes for each in operation.outputs), device)
        found = _workspace([_run(single, device) for _ in range(repeats)])
        del fillers
        return found
    except NotMeasurableError as error:
        asked = _asked_in_vain(operation, error)
        if first:
            return min(first, asked) if 2 * asked > first else first
        if not asked:
            raise
        return asked


def _asked_in_vain(operation: Operation, error: NotMeasurableError) -> int:
    """Bytes that its kernel asked for beside its outputs when there was no memory; else 0."""
    if not isinstance(error.__cause__, tf.errors.ResourceExhaustedError):
        return 0
    asked = bytes_asked_for(error.__cause__.message)
    return 0 if asked in [each.bytes for each in operation.outputs] else asked


def _seconds_of_one(
    kernel: Kernel, single: Callable[[], Any], with_call: float, device: str, repeats: int
) -> float:
    """Seconds of one run of a short operation, without the call of the function around it."""
    runs = 1 + min(_MOST_RUNS, math.ceil(_LONG_SERIES / with_call))
    series = kernel.function(runs)
    series()
    found: list[float] = []
    end = time.perf_counter() + _ENOUGH
    while len(found) < repeats or (len(found) < 10 * repeats and time.perf_counter() < end):
        longer, shorter = _run(series, device).seconds, _run(single, device).seconds
        found.append((longer - shorter) / (runs - 1))
    return statistics.median(found)


@dataclass(frozen=True)
class _Run:
    """Seconds of a call, and the bytes held at most beyond those held when it had ended."""

    seconds: float
    workspace: int | None


def _run(function: Callable[[], Any], device: str) -> _Run:
    counts = _reset(device)
    start = time.perf_counter()
    outputs = function()
    if not device.startswith("CPU"):
        tf.test.experimental.sync_devices()  # others compute behind Python's back
    seconds = time.perf_counter() - start
    if not counts:
        return _Run(seconds, None)
    # What is held now are inputs and outputs, with what the allocator wasted on them.
    memory = tf.config.experimental.get_memory_info(device)
    del outputs
    return _Run(seconds, int(memory["peak"] - memory["current"]))


def _workspace(runs: Sequence[_Run]) -> int | None:
    """The allocator's peak beyond inputs and outputs; None where it keeps no count."""
    # A buffer that something else frees late looks like workspace; it does not every time.
    return min((each.workspace for each in runs if each.workspace is not None), default=None)


def _reset(device: str) -> bool:
    """Forget the peak; whether the allocator keeps a count."""
    try:
        tf.config.experimental.reset_memory_stats(device)
    except ValueError:
        return False
    return True
