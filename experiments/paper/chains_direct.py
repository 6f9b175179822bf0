"""The segmentations of Hong et al. (2025) as their recurrences say, to compare faster forms with.

`solvers.checkpointing.segmentation` has those, which need fewer caps and layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from solvers.checkpointing.segmentation import Segmentation, capped_sum, segment_peak


def objective_revised(sizes: Sequence[int], checkpoints: Sequence[int]) -> int:
    """The revised objective of given checkpoints, 0 and n among them, in bytes."""
    peak = kept = sizes[0]
    for left, right in pairwise(checkpoints):
        kept += sizes[right]
        peak = max(peak, kept + segment_peak(sizes, left, right))
    return peak


def segment_sum_directly(sizes: Sequence[int]) -> Segmentation:
    """The least sum objective in O(n³): O(n) for each of the O(n²) sizes that a segment can have.

    Example:
        >>> segment_sum_directly([4, 1, 4, 1, 4]).objective
        10
    """
    before = [0, *accumulate(sizes)]
    caps = {end - before[start] for start in range(len(before)) for end in before[start:-1]}
    found = (capped_sum(sizes, cap) for cap in caps)
    least = min(found, key=lambda each: each[0] + each[1])
    return Segmentation(least[2], least[0] + least[1])


def segment_revised_directly(sizes: Sequence[int]) -> Segmentation:
    """The least revised objective in O(n²): T(i) = d_i + min_{j>i} max(U(i, j), T(j)).

    Example:
        >>> segment_revised_directly([4, 1, 4, 1, 4])
        Segmentation(checkpoints=(0, 2, 3, 4), objective=13)
    """
    n = len(sizes) - 1
    total = [0] * n + [sizes[n]]
    following = [n] * (n + 1)
    for i in range(n - 1, -1, -1):
        inside, largest = 0, sizes[i]
        candidates: list[tuple[int, int]] = []
        for j in range(i + 1, n + 1):
            segment = inside + largest if j > i + 1 else 0
            candidates.append((max(segment + sizes[j], total[j]), j))
            inside += sizes[j]
            largest = max(largest, sizes[j])
        least, following[i] = min(candidates)
        total[i] = sizes[i] + least
    checkpoints = [0]
    while checkpoints[-1] < n:
        checkpoints.append(following[checkpoints[-1]])
    return Segmentation(tuple(checkpoints), total[0])
