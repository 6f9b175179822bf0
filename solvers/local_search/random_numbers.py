"""Random numbers of a search state, the same for the same seed; everything is compiled."""

from __future__ import annotations

from solvers.local_search.compilation import compiled
from solvers.local_search.search_state import RANDOM, SearchState


@compiled
def random_bits(state: SearchState) -> int:
    """36 random bits, by a linear congruential generator modulo 2**64."""
    bits = int(state.totals[RANDOM]) * 3935559000370003845 + 2691343689449507681
    state.totals[RANDOM] = bits
    return (bits >> 27) & 0xFFFFFFFFF


@compiled
def random_below(state: SearchState, limit: int) -> int:
    """A whole number in [0, limit)."""
    return random_bits(state) % limit


@compiled
def random_unit(state: SearchState) -> float:
    """A number in [0, 1)."""
    return random_bits(state) / 0x1000000000
