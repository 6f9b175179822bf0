"""The memory of a CPU's allocator that has a limit, filled for a moment.

The allocator gives a kernel the smallest free piece that is large enough, whole if it is not twice
as large, or 128 MiB larger. Near its limit that may be all that is left, whatever the kernel asks
for; and where less is left, TensorFlow's error tells what it asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import tensorflow as tf

from profiles.tensorflow_internals import allocator_limit

_MOST_WASTE = 128 << 20
_LITTLE = 4096
"""Bytes that don't matter beside a workspace."""


def too_full_for(workspace: int, outputs: int, device: str) -> list[Any]:
    """Buffers beside which a kernel has no memory, if it may have got more than it asked for.

    Args:
        workspace: bytes of the piece that it got; it asked for at least half of them.
        outputs: bytes of its outputs.
        device: "CPU:0", for one; of others no memory is filled.
    """
    limit = cpu_limit(device)
    if limit is None:
        return []
    whole = workspace + outputs
    if whole + min(whole, _MOST_WASTE) <= limit - _held(device):
        return []
    with tf.device(device):
        return list(_fill_all_but(outputs + workspace // 2, limit, device))


def cpu_limit(device: str) -> int | None:
    """Bytes that the allocator of a CPU may have in all; None of others, and where none is set."""
    return allocator_limit(device) if device.startswith("CPU") else None


def _fill_all_but(left: int, limit: int, device: str) -> Iterator[Any]:
    with suppress(tf.errors.ResourceExhaustedError):
        while (free := limit - _held(device)) - left > _LITTLE:
            # A third, for of more than half a piece it would be all.
            yield tf.raw_ops.Empty(shape=[min(free - left, free // 3)], dtype=tf.uint8)


def _held(device: str) -> int:
    return int(tf.config.experimental.get_memory_info(device)["current"])
