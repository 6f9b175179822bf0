"""The least-peak segmentations of a chain by dynamic programming (Hong et al., 2025).

A chain of layers 0 … n with outputs of d_0 … d_n bytes is cut at checkpoints, of which the last
layer is one; each segment between two of them is recomputed once. Three objectives, in bytes:

    sum      Σ_{i∈C} d_i + max over segments of Σ d inside              (Chen et al., 2016)
    traced   Σ_{i∈C} d_i + max over segments of s(l, r)
    revised  max over segments of Σ_{i∈C, i≤r} d_i + s(l, r)

with s(l, r) = Σ_{l<k<r} d_k + max_{l≤k<r} d_k, which adds the gradient that flows through a
segment, and s = 0 for neighbours. The traced and the revised one start at checkpoint 0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise


@dataclass(frozen=True)
class Segmentation:
    """Checkpoints of a chain, ascending, and the value of the objective in bytes."""

    checkpoints: tuple[int, ...]
    objective: int


def segment_sum(sizes: Sequence[int]) -> Segmentation:
    """The least sum objective; O(n) for each cap on the segments that has to be tried.

    Example:
        >>> segment_sum([4, 1, 4, 1, 4])
        Segmentation(checkpoints=(1, 3, 4), objective=10)
    """
    return least_over_caps(lambda cap: capped_sum(sizes, cap), sum(sizes))


def segment_traced(sizes: Sequence[int]) -> Segmentation:
    """The least traced objective; O(n) for each cap on the segments that has to be tried."""
    return least_over_caps(lambda cap: _capped_traced(sizes, cap), 2 * sum(sizes))


def segment_revised(sizes: Sequence[int]) -> Segmentation:
    """The least revised objective, in O(n).

    T(n) = d_n and T(i) = d_i + min_{j>i} max(U(i, j), T(j)), with U(i, j) = s(i, j) + d_j, is
    what the chain from checkpoint i on takes. Since U grows with j, only those j count at which
    T is less than at all between i and j; and since it grows as i falls, all but the first of
    those with U(i, j) ≥ T(j) are of no use any more, now or later.
    """
    n = len(sizes) - 1
    before = [0, *accumulate(sizes)]  # before[k] = d_0 + … + d_{k-1}
    total = [0] * n + [sizes[n]]  # T
    following = [n] * (n + 1)
    useful = deque([n])  # j ascending, T(j) strictly falling
    last_window, other_window = _LargestOf(sizes), _LargestOf(sizes)
    for i in range(n - 1, -1, -1):
        last_window.add(i)
        other_window.add(i)
        last = useful[-1]
        best = _U(sizes, before, i, last, last_window)
        while len(useful) > 1:
            other = useful[-2]
            value = _U(sizes, before, i, other, other_window)
            if value < total[other]:
                break
            useful.pop()
            last, best = other, value
        best = max(best, total[last])
        if len(useful) > 1 and total[useful[-2]] <= best:
            last, best = useful[-2], total[useful[-2]]
        total[i] = sizes[i] + best
        following[i] = last
        while useful and total[useful[0]] >= total[i]:
            useful.popleft()
        useful.appendleft(i)
    return Segmentation(_follow(following), total[0])


class _LargestOf:
    """The largest size in a window [i, j) of which both ends only fall."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.records: deque[int] = deque()  # ascending, sizes strictly rising

    def add(self, i: int) -> None:
        """Let the window begin at i, one before where it did."""
        size = self.sizes[i]
        while self.records and self.sizes[self.records[0]] <= size:
            self.records.popleft()
        self.records.appendleft(i)

    def until(self, j: int) -> int:
        """The largest size before j, which becomes the end of the window."""
        while self.records[-1] >= j:
            self.records.pop()
        return self.sizes[self.records[-1]]


def _U(  # noqa: N802
    sizes: Sequence[int], before: Sequence[int], i: int, j: int, window: _LargestOf
) -> int:
    """U(i, j) = s(i, j) + d_j."""
    largest = window.until(j)
    return sizes[j] if j == i + 1 else before[j] - before[i + 1] + largest + sizes[j]


def objective_sum(sizes: Sequence[int], checkpoints: Sequence[int]) -> int:
    """The sum objective of given checkpoints, in bytes."""
    ends = [-1, *checkpoints]
    inside = [sum(sizes[left + 1 : right]) for left, right in zip(ends, checkpoints, strict=False)]
    return sum(sizes[i] for i in checkpoints) + max(inside)


def objective_traced(sizes: Sequence[int], checkpoints: Sequence[int]) -> int:
    """The traced objective of given checkpoints, 0 and n among them, in bytes."""
    segments = pairwise(checkpoints)
    largest = max((segment_peak(sizes, left, right) for left, right in segments), default=0)
    return sum(sizes[i] for i in checkpoints) + largest


def segment_peak(sizes: Sequence[int], left: int, right: int) -> int:
    """s(l, r) in bytes."""
    return sum(sizes[left + 1 : right]) + max(sizes[left:right]) if right > left + 1 else 0


Capped = tuple[int, int, tuple[int, ...]]
"""Σ of the checkpoints and the largest segment, both in bytes, and the checkpoints."""


def least_over_caps(
    capped: Callable[[int], Capped], largest_cap: int, smallest_cap: int = 0
) -> Segmentation:
    """The least Σ + max segment, given the least Σ for any cap on the segments.

    Σ only falls as the cap rises. So a range of caps whose Σ at the upper end plus its lower end
    is no better than the best known holds nothing; other ranges are halved.
    """
    held, largest, checkpoints = capped(largest_cap)
    best = Segmentation(checkpoints, held + largest)
    ranges = [
        (smallest_cap, largest - 1, held)
    ]  # caps from, to, and a Σ that none of them is below
    while ranges:
        low, high, least = ranges.pop()
        if low > high or least + low >= best.objective:
            continue
        middle = (low + high) // 2
        held, largest, checkpoints = capped(middle)
        if held + largest < best.objective:
            best = Segmentation(checkpoints, held + largest)
        ranges.append((low, largest - 1, held))
        ranges.append((middle + 1, high, least))
    return best


def capped_sum(sizes: Sequence[int], cap: int) -> Capped:
    """The least Σ_{i∈C} d_i with no more than `cap` bytes inside a segment: T(n, cap)."""
    checkpoints, held = _capped(sizes, cap, first=-1)
    return held, objective_sum(sizes, checkpoints) - held, checkpoints


def _capped_traced(sizes: Sequence[int], cap: int) -> Capped:
    """The least Σ_{i∈C} d_i with s(l, r) ≤ `cap` for every segment."""
    checkpoints, held = _capped(sizes, cap, first=0)
    return held, objective_traced(sizes, checkpoints) - held, checkpoints


def _capped(sizes: Sequence[int], cap: int, first: int) -> tuple[tuple[int, ...], int]:
    """The checkpoints of least Σ, and that, with every segment under `cap`.

    Args:
        first: where the first segment begins: before layer 0, at −1, and a segment is what is
            inside; or at checkpoint 0, and it is s(l, r).
    """
    before = [0, *accumulate(sizes)]
    held = list(sizes)  # Σ of the checkpoints up to i, which is one
    previous = [-1] * len(sizes)
    window: deque[int] = deque()  # left ends, held strictly rising
    largest: deque[int] = deque([0])  # of d over the window, sizes strictly falling
    left = first
    flowing = 0
    for i, size in enumerate(sizes):
        while left < i - 1 and before[i] - before[left + 1] + flowing > cap:
            left += 1
            if first == 0:
                if largest[0] < left:
                    largest.popleft()
                flowing = sizes[largest[0]]
        while window and window[0] < left:
            window.popleft()
        if left >= 0 and window:
            previous[i] = window[0]
            held[i] += held[window[0]]
        while window and held[window[-1]] >= held[i]:
            window.pop()
        window.append(i)
        if first == 0:
            while largest and sizes[largest[-1]] <= size:
                largest.pop()
            largest.append(i)
            flowing = sizes[largest[0]]
    return _trace_back(previous), held[-1]


def _trace_back(previous: Sequence[int]) -> tuple[int, ...]:
    """The checkpoints that end with the last layer, each naming the one before it."""
    checkpoints = [len(previous) - 1]
    while previous[checkpoints[-1]] >= 0:
        checkpoints.append(previous[checkpoints[-1]])
    return tuple(reversed(checkpoints))


def _follow(following: Sequence[int]) -> tuple[int, ...]:
    """The checkpoints that begin with layer 0, each naming the next."""
    checkpoints = [0]
    while checkpoints[-1] < len(following) - 1:
        checkpoints.append(following[checkpoints[-1]])
    return tuple(checkpoints)
