"""How the allocator's memory lies: its free pieces, found by filling them for a moment.

The allocator gives out the smallest piece that is large enough. So buffers of falling sizes fill
every gap. Once a buffer lands in the largest piece, all gaps of its size are filled. That piece is
taken to have no end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import tensorflow as tf

from checkmate_tf.devices.allocator import BestFitAllocator
from checkmate_tf.devices.measure import held_bytes
from profiles.tensorflow_internals import variable_content

_SMALLEST = 256
"""Bytes of the smallest piece that TensorFlow's allocator has."""

_BELOW = 1 << 60
"""What is subtracted from addresses above the piece without end."""

_ONE_MORE = 300 << 10
"""Bytes of a buffer that may lie in the memory or not."""

_MOST_FILLERS = 16384
"""After so many the search ends: a memory in so many pieces has never been seen."""

_ATTEMPTS = 3
"""How often memory is looked at, at most: other threads may change it meanwhile."""


_OF_FOUR_BITS = frozenset(["int4", "uint4"])
"""Types of numbers that TensorFlow has no kernels to copy for."""


@dataclass(frozen=True)
class MemoryLayout:
    """What lies where, in the memory of the CPU's allocator, before a step.

    Addresses of other regions than that of the largest piece may be moved, to lie below it.

    Attributes:
        free: (address, bytes) of its free pieces, but for the largest.
        endless: address of the largest free piece.
        variables: (address, bytes) of the step's variables, by the id of their handle. Those that
            TensorFlow copies for every reader stay where they are, and are not among them.
        arriving: bytes of buffers that are made before the step.
    """

    free: tuple[tuple[int, int], ...]
    endless: int
    variables: dict[int, tuple[int, int]]
    arriving: tuple[int, ...] = field(default=())

    def and_alike(self) -> tuple[MemoryLayout, ...]:
        """This one, and others that it may be in training.

        A small buffer that lies elsewhere can change how large ones fall by some per cent. A
        schedule that holds much more in one of these than in another has a lucky forecast.
        """
        one_more = replace(self, arriving=(*self.arriving, _ONE_MORE))
        return self, replace(self, free=()), one_more


def fill_gaps(size: int, smallest: int, most: int) -> Iterator[Any]:
    """Buffers that fill the gaps; a piece for a block of `size` bytes stays free.

    Args:
        size: bytes of the largest gap that is looked for.
        smallest: bytes of the smallest one.
        most: buffers, of which the caller must hold all.
    """
    with suppress(tf.errors.ResourceExhaustedError):
        block = address_of(_empty(2 * size))
        filler, count = size, 0
        while filler >= smallest and count < most:
            made = _empty(filler)
            if block <= address_of(made) < block + 2 * size:
                filler //= 2
                del made  # else the next one lies behind it
            else:
                count += 1
                yield made


def memory_layout(captured: Sequence[tuple[Any, Any]], size: int) -> MemoryLayout | None:
    """How the memory of the CPU's allocator lies now.

    None where it has no room for one piece of twice `size` bytes, and where other threads allocate
    and release all the time. The allocator must count all its buffers.

    Args:
        captured: (placeholder, handle) of the step's variables.
        size: bytes of the largest piece that can be a gap.
    """
    for _ in range(_ATTEMPTS):
        found = _unchecked_layout(captured, max(size, _SMALLEST))
        with suppress(ValueError):  # other threads allocated or released meanwhile
            if found is not None:
                BestFitAllocator.laid_out(found.free, found.variables.values(), found.endless)
            return found
    return None


def _unchecked_layout(captured: Sequence[tuple[Any, Any]], size: int) -> MemoryLayout | None:
    """As `memory_layout`, but wrong where other threads allocate or release meanwhile."""
    try:
        endless = address_of(_empty(2 * size))
    except tf.errors.ResourceExhaustedError:
        return None
    held = held_bytes() or 0
    fillers, pieces = [], []
    for each in fill_gaps(size, _SMALLEST, _MOST_FILLERS):
        fillers.append(each)
        before, held = held, held_bytes() or 0
        pieces.append((address_of(each), held - before))
    if len(fillers) == _MOST_FILLERS:
        return None
    free = [(_below(address, endless), each) for address, each in _joined(sorted(pieces))]
    variables = {
        handle: (_below(address, endless), each)
        for address, (handle, each) in _places(captured).items()
    }
    return MemoryLayout(tuple(free), endless, variables)


def address_of(tensor: Any) -> int:
    """Where the buffer of a tensor on the CPU begins."""
    return int(np.asarray(tensor).ctypes.data)


def _joined(pieces: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The same, with what touches as one."""
    start = 0
    for number, (one, other) in enumerate(pairwise([*pieces, (-1, 0)])):
        if one[0] + one[1] != other[0]:
            yield pieces[start][0], one[0] + one[1] - pieces[start][0]
            start = number + 1


def _below(address: int, endless: int) -> int:
    return address - _BELOW if address > endless else address


def values_in_place(captured: Sequence[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """(handle, value) of plain variables of numbers, each once, whose readers get its own buffer.

    TensorFlow copies the others for every reader.

    Args:
        captured: (placeholder, handle) of a function's variables.
    """
    seen: set[str] = set()
    for placeholder, handle in captured:
        content = variable_content(placeholder)
        if content is None or not hasattr(handle, "numpy"):  # or of a graph that is being built
            continue
        dtype = tf.as_dtype(content.dtype)
        if not _can_be_copied(dtype, tf.TensorShape(content.shape)) or repr(handle) in seen:
            continue
        seen.add(repr(handle))
        if tf.raw_ops.VarIsInitializedOp(resource=handle):
            one, other = (tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype) for _ in range(2))
            if address_of(one) == address_of(other):
                yield handle, one


def _can_be_copied(dtype: tf.DType, shape: tf.TensorShape) -> bool:
    """Whether the buffer of a variable has an address, and kernels that copy it."""
    if dtype.name in _OF_FOUR_BITS:
        return False
    is_numeric = dtype.is_floating or dtype.is_integer or dtype.is_complex or dtype.is_bool
    # A scalar of a type that numpy does not have itself, like bfloat16, becomes no array.
    return bool(is_numeric and (shape.rank or np.dtype(dtype.as_numpy_dtype).isbuiltin == 1))


def _places(captured: Sequence[tuple[Any, Any]]) -> dict[int, tuple[int, int]]:
    """By address, the id of a variable's handle and its bytes.

    Buffers of the allocator begin at least 256 bytes apart. Where two are closer, TensorFlow has
    taken over numpy's memory for them, and the allocator doesn't have them.
    """
    found: dict[int, tuple[int, int]] = {}
    for handle, value in values_in_place(captured):
        found.setdefault(address_of(value), (id(handle), np.asarray(value).nbytes))
    close = [pair for pair in pairwise(sorted(found)) if pair[1] - pair[0] < _SMALLEST]
    for address in {each for pair in close for each in pair}:
        del found[address]
    return found


def _empty(size: int) -> Any:
    return tf.raw_ops.Empty(shape=[size], dtype=tf.uint8)
