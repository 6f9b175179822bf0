"""TensorFlow's best-fit-with-coalescing allocator, simulated: what it holds for what is asked.

It hands out the smallest free piece that is large enough, and splits off the rest only if the
piece is twice the size asked for or 128 MiB larger. So it holds more than the live bytes, by
10 to 20 % in a train step, and how much more depends on how its free pieces happen to lie.

Source of the rules: bfc_allocator.cc of TensorFlow's TSL.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

_ALIGNMENT = 256
MOST_WASTE = 128 << 20
"""Bytes that a piece may be larger than what is asked for, if it is less than twice as large."""
_LEAST_REGION = 2 << 20
_ALL = 1 << 50


@dataclass(slots=True)
class _Piece:
    size: int
    free: bool
    before: int | None
    after: int | None


class NoPieceError(Exception):
    """No free piece is large enough, though all together may be."""


class BestFitAllocator:
    """Bytes that the allocator holds, `held`, and their maximum so far, `peak`.

    Example:
        >>> allocator = BestFitAllocator()
        >>> first = allocator.allocate(1000)
        >>> allocator.held
        1024
        >>> allocator.release(first)
        >>> allocator.held, allocator.peak
        (0, 1024)
    """

    def __init__(self, limit: int = _ALL) -> None:
        """An allocator of `limit` bytes; by default, of more than any step takes."""
        self.held = 0
        self.peak = 0
        self._pieces = {0: _Piece(limit, True, None, None)}
        self._free = [(limit, 0)]  # (size, address), sorted

    @classmethod
    def laid_out(
        cls, free: Iterable[tuple[int, int]], held: Iterable[tuple[int, int]], endless: int
    ) -> BestFitAllocator:
        """An allocator amid whose memory other buffers lie for good.

        Args:
            free: (address, bytes) of free pieces.
            held: the same of buffers that may be released later on; they count as held. What lies
                between all these does not.
            endless: address of a free piece that never ends; all others lie below it.

        Raises:
            ValueError: one of them has no bytes, or reaches into another.

        Example:
            >>> allocator = BestFitAllocator.laid_out([(0, 512)], [(1024, 256)], 1280)
            >>> allocator.allocate(512), allocator.allocate(512), allocator.held
            (0, 1280, 1280)
        """
        pieces = [(address, size, True) for address, size in free]
        pieces += [(address, aligned(size), False) for address, size in held]
        pieces = sorted([*pieces, (endless, _ALL, True)])
        for (one, size, _), (other, _, _) in pairwise(pieces):
            if size <= 0 or one + size > other:
                raise ValueError(f"{size} bytes at {one}, and the next piece begins at {other}")
        between = [
            (one + size, other - one - size, False)
            for (one, size, _), (other, _, _) in pairwise(pieces)
            if one + size < other
        ]
        filled = sorted(pieces + between)
        addresses = [None, *(address for address, _, _ in filled), None]
        allocator = cls()
        allocator._pieces = {
            address: _Piece(size, is_free, before, after)
            for (address, size, is_free), before, after in zip(
                filled, addresses, addresses[2:], strict=False
            )
        }
        allocator._free = sorted((size, address) for address, size, is_free in pieces if is_free)
        allocator.held = sum(aligned(size) for _, size in held)
        allocator.reset_peak()
        return allocator

    def allocate(self, size: int) -> int:
        """The address of a new buffer of at least `size` bytes.

        Raises:
            NoPieceError: there is no such piece.
        """
        size = aligned(size)
        place = bisect_left(self._free, (size, 0))
        if place == len(self._free):
            raise NoPieceError(f"no piece of {size} bytes; free are {self._free[-3:]}")
        found, address = self._free.pop(place)
        piece = self._pieces[address]
        piece.free = False
        if _is_split(found, size):
            self._split(address, size)
        self.held += piece.size
        self.peak = max(self.peak, self.held)
        return address

    def release(self, address: int) -> None:
        """Give back the buffer at `address`; free neighbours become one piece."""
        piece = self._pieces[address]
        self.held -= piece.size
        if piece.after is not None and self._pieces[piece.after].free:
            self._take_from_free(piece.after)
            self._join(address, piece.after)
        if piece.before is not None and self._pieces[piece.before].free:
            self._take_from_free(piece.before)
            address, joined = piece.before, address
            self._join(address, joined)
        self._add_to_free(address)

    def reset_peak(self) -> None:
        """Let `peak` start again at what is held now."""
        self.peak = self.held

    @property
    def free_pieces(self) -> tuple[tuple[int, int], ...]:
        """(size, address) of all free pieces, sorted."""
        return tuple(self._free)

    def _split(self, address: int, size: int) -> None:
        piece = self._pieces[address]
        rest = address + size
        self._pieces[rest] = _Piece(piece.size - size, True, address, piece.after)
        if piece.after is not None:
            self._pieces[piece.after].before = rest
        piece.size, piece.after = size, rest
        self._add_to_free(rest)

    def _join(self, address: int, following: int) -> None:
        piece, other = self._pieces[address], self._pieces.pop(following)
        piece.size += other.size
        piece.after = other.after
        if other.after is not None:
            self._pieces[other.after].before = address

    def _add_to_free(self, address: int) -> None:
        piece = self._pieces[address]
        piece.free = True
        insort(self._free, (piece.size, address))

    def _take_from_free(self, address: int) -> None:
        piece = self._pieces[address]
        piece.free = False
        self._free.pop(bisect_left(self._free, (piece.size, address)))


def in_new_region(size: int) -> int:
    """Bytes that are held for a buffer for which an allocator that grows takes a new region.

    The bytes of a region are a power of two. Its rest is split off by the rule of all pieces.

    Example:
        >>> in_new_region(100 << 20) >> 20, in_new_region(300 << 20) >> 20
        (128, 300)
    """
    size = aligned(size)
    region = max(_LEAST_REGION, 1 << (size - 1).bit_length())
    return size if _is_split(region, size) else region


def for_the_rest(left: int) -> Iterator[int]:
    """Bytes to ask for, one after the other, to get all that an allocator may still take.

    A new region has the next power of two of bytes, or what is left of the limit if that is less:
    all of it, for a buffer of a little more than half of it. Where the regions so far have free
    pieces, less than `left` can be had as one, and the first buffer may be too large.

    Example:
        >>> from itertools import islice
        >>> list(islice(for_the_rest(100 << 20), 2)) == [(64 << 20) + 256, (32 << 20) + 256]
        True
    """
    half = 1 << max(0, left - _ALIGNMENT - 1).bit_length()
    while (half := half // 2) >= _LEAST_REGION:
        yield half + _ALIGNMENT


def _is_split(piece: int, size: int) -> bool:
    """Whether a buffer of `size` bytes leaves the rest of a piece to others."""
    return piece >= 2 * size or piece - size >= MOST_WASTE


def aligned(size: int) -> int:
    """Bytes of the piece that a buffer of `size` bytes takes at least."""
    return max(1, -(-size // _ALIGNMENT)) * _ALIGNMENT
