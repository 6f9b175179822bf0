"""A CPU: several operations at once, in the memory of the host."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from checkmate_tf.devices.allocator import in_new_region
from checkmate_tf.devices.device import Device, Order, Room
from checkmate_tf.devices.layout import MemoryLayout, memory_layout
from checkmate_tf.devices.measure import counts_small_buffers, held_bytes
from profiles.devices import usable_cores
from profiles.tensorflow_internals import CPU_LIMIT, one_dnn_is_on
from solvers import format_bytes

_MEMORY = Path("/proc/meminfo")

_CONTAINER_LIMIT, _CONTAINER_USE = (
    Path("/sys/fs/cgroup") / f"memory.{name}" for name in ("max", "current")
)

BATCHES_AHEAD = 4
"""Batches that the input pipeline of `fit` has ready beside the one of the step. They lie in the
memory that a budget counts."""

LEFT_TO_OTHERS = 0.1
"""Share of the host's free memory that the device's budget leaves alone: other processes take from
it as well, and who takes too much is killed."""

NO_HIGHER_STEPS = 2
"""Steps in a row that held no more than one before: the highest is taken to be found."""


@dataclass(frozen=True)
class Cpu(Device):
    """See `Device`.

    Of twenty steps after three that held the same one held up to 3.5 % more, for what runs side by
    side is chance; with an input pipeline up to a batch more, for which room is left as well.
    """

    order: Order = Order.AS_FREED
    tries_kernels: bool = False
    moves_values: bool = True
    scatter: float = 0.03
    scatter_seen: float = 0.75
    is_host: bool = True
    copies_early: bool = True
    has_exact_compiler: bool = False  # its allocator gives XLA a larger piece where it has one

    def counted_by(self) -> str:
        """See `Device`.

        Example:
            >>> Cpu("CPU:0").counted_by().partition(",")[0] in (
            ...     "", "TensorFlow's BFC allocator", "oneDNN's allocator"
            ... )
            True
        """
        if held_bytes(self.name) is None:
            return ""
        if not counts_small_buffers():
            return "oneDNN's allocator, but for buffers below 256 KiB"
        return "oneDNN's allocator" if one_dnn_is_on() else "TensorFlow's BFC allocator"

    def size(self) -> int | None:
        """The least of what its allocator, the container and the host may have."""
        limit = self.limit()
        known = [*([] if limit is None else [limit]), *_said(_MEMORY, "MemTotal")]
        with suppress(OSError, ValueError):  # no container, or one without a limit ("max")
            known.append(int(_CONTAINER_LIMIT.read_text()))
        return min(known, default=None)

    def limit(self) -> int | None:
        """See `Device`."""
        return self.wall()

    def room(self) -> Room | None:
        """See `Device`: its allocator's limit; without one, what it holds and the host has free."""
        limit, free, held = self.limit(), self.free(), self.held()
        if free is None:
            return None if limit is None else Room(limit, (_limited(limit),))
        left = int(LEFT_TO_OTHERS * free)
        if limit is not None and limit <= held + free - left:
            return Room(limit, (_limited(limit),))
        return Room(
            held + free - left,
            (
                f"{format_bytes(free)} that the host has free",
                f"{format_bytes(held)} more that are held already",
                f"less {format_bytes(left)}, a tenth, for other processes",
            ),
        )

    def raises_when_full(self) -> bool:
        """See `Device`: only at its allocator's limit; else the system ends the process."""
        return self.limit() is not None

    def free(self) -> int | None:
        """See `Device`; what the container may still have counts, too."""
        known = _said(_MEMORY, "MemAvailable")
        with suppress(OSError, ValueError):
            limit, used = (int(each.read_text()) for each in (_CONTAINER_LIMIT, _CONTAINER_USE))
            known.append(max(0, limit - used))
        return min(known, default=None)

    def left(self) -> int | None:
        """See `Device`: on a GPU, what takes too much ends in an error of the allocator's."""
        free, limit = self.free(), self.limit()
        left = [] if free is None else [free]
        if limit is not None:
            left.append(limit - (held_bytes() or 0))
        return min(left, default=None)

    def reserve(self, size: int) -> None:
        """See `Device`; memory that nobody writes to costs nothing here."""
        self.take_one_piece(size)

    def held_for_block(self, size: int) -> int:
        """See `Device`."""
        return in_new_region(size) if self.counted_by() else size

    def constant(self, value: Any) -> Any:
        """See `Device`; it may first lie in NumPy's memory, which no allocator counts."""
        with tf.device(self.name):
            return tf.raw_ops.DeepCopy(x=super().constant(value))

    def layout(self, captured: Sequence[tuple[Any, Any]], size: int) -> MemoryLayout | None:
        """See `Device`."""
        if held_bytes() is None or not counts_small_buffers():
            return None
        return memory_layout(captured, size)

    def as_planned(self) -> AbstractContextManager[None]:
        """See `Device`: here Grappler lets nothing lie elsewhere."""
        return nullcontext()

    def at_once(self) -> int:
        """See `Device`: threads that run operations."""
        return tf.config.threading.get_inter_op_parallelism_threads() or usable_cores()

    def batches_held(self, already: int = 0, several_at_once: bool = False) -> int:
        """See `Device`."""
        return max(1, 1 + BATCHES_AHEAD - already)

    def has_seen_enough(self, peaks: Sequence[int]) -> bool:
        """Whether the last steps held no more than one before them."""
        before = peaks[:-NO_HIGHER_STEPS]
        return bool(before) and max(peaks) == max(before)

    def peak_of_unchanged(self, peaks: Sequence[int]) -> int:
        """The highest: threads change the order of operations."""
        return max(peaks)


def host_has_room(size: int) -> bool:
    """Whether so many bytes of the host's memory can be taken, and others are left enough.

    Example:
        >>> host_has_room(1), host_has_room(1 << 60)
        (True, False)
    """
    free = Cpu("CPU:0").free()
    return free is None or size <= (1 - LEFT_TO_OTHERS) * free


def _limited(limit: int) -> str:
    return f"{format_bytes(limit)} that {CPU_LIMIT} gives the CPU's allocator"


def _said(path: Path, what: str) -> list[int]:
    """Bytes that the system says of itself, if it does."""
    try:
        found = re.search(rf"^{what}:\s*(\d+) kB", path.read_text(), re.MULTILINE)
    except OSError:
        return []
    return [int(found[1]) << 10] if found else []
