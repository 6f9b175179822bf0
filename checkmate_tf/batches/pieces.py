"""Whether the buffers of a batch find pieces in a device's memory, where that is one region."""

from __future__ import annotations

from checkmate_tf.devices.current import current_device
from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.program.forecast import forecast
from checkmate_tf.program.lower import lower
from solvers import Schedule

_SMALLER = 0.96
"""Share of a batch that finds no pieces at which the next one is looked at."""


def in_pieces(extracted: Extraction, size: int, schedule: Schedule, batch: int, usable: int) -> int:
    """The largest batch, `batch` at most, whose buffers find pieces in a region of memory.

    Args:
        extracted: the step at a batch of `size`; at another one all grows with it, but what is
            fixed.
        size: of that batch.
        schedule: of its graph.
        batch: the largest that is looked at.
        usable: bytes of the region.
    """
    instructions = lower(extracted, schedule, current_device())
    fixed = extracted.graph.fixed_bytes
    while batch > 1:
        limit = fixed + int((usable - fixed) * size / batch)
        if not forecast(extracted.program, instructions, fixed, limit).exhausts:
            break
        batch = int(_SMALLER * batch)
    return batch
