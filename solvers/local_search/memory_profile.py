"""The memory at every position, less the budget, and the violation; everything is compiled.

Positions are kept in blocks. In block b, at index i,

    memory − budget = profile[b, i] + block_addend[b]

and `block_max`, `block_min` are the extremes of that sum. A range of positions then changes in
time proportional to its blocks. Both parts may overflow 32 bits; their sum does not.
"""

from __future__ import annotations

from numba import int32

from solvers.local_search.compilation import compiled
from solvers.local_search.search_state import VIOLATION, SearchState
from solvers.local_search.settings import BLOCK, BLOCK_BITS

_LARGEST = 2**31 - 1


@compiled
def add_in_block(state: SearchState, block: int, first: int, last: int, change: int) -> None:
    """Add `change` at the indices first…last of `block`.

    One pass over all indices, in 32 bits and without branches: compilers turn that into vector
    instructions.
    """
    small_change = int32(change)
    addend = state.block_addend[block]
    gained = int32(0)
    high = int32(-_LARGEST)
    low = int32(_LARGEST)
    for index in range(BLOCK):
        old = int32(state.profile[block, index] + addend)
        new = int32(old + (small_change if first <= index <= last else int32(0)))
        state.profile[block, index] = new - addend
        gained = int32(gained + max(new, int32(0)) - max(old, int32(0)))
        high = max(high, new)
        low = min(low, new)
    state.block_max[block] = high
    state.block_min[block] = low
    state.totals[VIOLATION] += gained


@compiled
def add_to_block(state: SearchState, block: int, change: int) -> None:
    """Add `change` at every index of `block`."""
    high, low = state.block_max[block], state.block_min[block]
    if low >= 0 and low + change >= 0:
        state.totals[VIOLATION] += change * BLOCK
    elif high > 0 or high + change > 0:
        before = state.block_addend[block]
        after = int32(before + change)
        gained = int32(0)
        for index in range(BLOCK):
            old = int32(state.profile[block, index] + before)
            new = int32(state.profile[block, index] + after)
            gained = int32(gained + max(new, int32(0)) - max(old, int32(0)))
        state.totals[VIOLATION] += gained
    state.block_addend[block] += change
    state.block_max[block] = high + change
    state.block_min[block] = low + change


@compiled
def add_memory(state: SearchState, first: int, last: int, change: int) -> None:
    """Add `change` at the positions first…last, both included; nothing if the range is empty."""
    if last < first:
        return
    first_block, last_block = first >> BLOCK_BITS, last >> BLOCK_BITS
    first, last = first & (BLOCK - 1), last & (BLOCK - 1)
    if first_block == last_block:
        add_in_block(state, first_block, first, last, change)
        return
    add_in_block(state, first_block, first, BLOCK - 1, change)
    for block in range(first_block + 1, last_block):
        add_to_block(state, block, change)
    add_in_block(state, last_block, 0, last, change)


@compiled
def violation_change(
    state: SearchState, first: int, last: int, change: int, assumed: int = 0
) -> int:
    """By how much the violation would grow if `change` were added at the positions first…last.

    Args:
        assumed: memory that these positions are taken to have besides, before and after.
    """
    total = 0
    for block in range(first >> BLOCK_BITS, (last >> BLOCK_BITS) + 1):
        if state.block_max[block] + assumed + max(change, 0) <= 0:
            continue
        start = max(first - (block << BLOCK_BITS), 0)
        stop = min(last - (block << BLOCK_BITS), BLOCK - 1) + 1
        base = int32(state.block_addend[block] + assumed)
        small_change = int32(change)
        for index in range(start, stop):
            old = int32(state.profile[block, index] + base)
            total += max(int32(old + small_change), int32(0)) - max(old, int32(0))
    return total
