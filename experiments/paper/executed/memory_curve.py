"""What the allocator holds while a step runs, at each allocation, as TensorFlow's profiler saw it.

A thread that asks the allocator misses what happens while it waits for a core; the profiler's own
records of the CPU's allocator don't, and their largest value is the allocator's peak.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from solvers import CheckmateError

_EVENTS = ("MemoryAllocation", "MemoryDeallocation")

_PICOSECONDS = 1e12

Curve = list[tuple[float, int]]
"""Seconds since the first allocation, and bytes held from then on."""


def memory_curve(run: Callable[[], Any]) -> Curve:
    """Bytes held over the time in which `run` computes.

    Raises:
        CheckmateError: the allocator tells the profiler nothing.

    Example:
        >>> import tensorflow as tf
        >>> before = tf.ones(1 << 20)
        >>> curve = memory_curve(lambda: tf.exp(before) + 1)
        >>> max(held for _, held in curve) >= 8 << 20
        True
    """
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder, options):
            run()
        (path,) = Path(folder).rglob("*.xplane.pb")
        space = xplane_pb2.XSpace.FromString(path.read_bytes())
    moments = sorted(each for plane in space.planes for each in _allocations(plane))
    if not moments:
        raise CheckmateError(
            "memory-not-counted",
            "the profiler saw no allocation; set TF_CPU_ALLOCATOR_USE_BFC=true before TensorFlow "
            "is imported",
        )
    return [((moment - moments[0][0]) / _PICOSECONDS, held) for moment, held in moments]


def _allocations(plane: Any) -> list[tuple[int, int]]:
    """Picoseconds, and the bytes held then."""
    kinds = {key: each.name for key, each in plane.event_metadata.items()}
    names = {key: each.name for key, each in plane.stat_metadata.items()}
    found = []
    for line in plane.lines:
        for event in line.events:
            if kinds[event.metadata_id] in _EVENTS:
                figures = {names[each.metadata_id]: each for each in event.stats}
                held = figures["bytes_allocated"]
                moment = 1000 * line.timestamp_ns + event.offset_ps
                found.append((moment, held.int64_value or held.uint64_value))
    return found


def thinned(curve: Curve, intervals: int) -> Curve:
    """The largest and the last value in each of so many equal intervals of time.

    Example:
        >>> thinned([(0.0, 1), (0.1, 5), (0.2, 2), (0.9, 3), (1.0, 0)], 2)
        [(0.1, 5), (0.2, 2), (0.9, 3), (1.0, 0)]
    """
    length = curve[-1][0] / intervals or 1.0
    kept: dict[int, list[tuple[float, int]]] = {}
    for point in curve:
        kept.setdefault(int(point[0] / length), []).append(point)
    return [
        each
        for points in kept.values()
        for each in dict.fromkeys((max(points, key=lambda point: point[1]), points[-1]))
    ]
