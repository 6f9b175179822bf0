from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.paper.chains_direct import (
    objective_revised,
    segment_revised_directly,
    segment_sum_directly,
)
from solvers.checkpointing.segmentation import (
    Segmentation,
    objective_sum,
    objective_traced,
    segment_revised,
    segment_sum,
    segment_traced,
)
from tests.costs import sweep

Objective = Callable[[Sequence[int], Sequence[int]], int]


SEGMENTATIONS: list[tuple[Callable[[Sequence[int]], Segmentation], Objective, bool]] = [
    (segment_sum, objective_sum, False),
    (segment_sum_directly, objective_sum, False),
    (segment_traced, objective_traced, True),
    (segment_revised, objective_revised, True),
    (segment_revised_directly, objective_revised, True),
]


def chains(most: int) -> st.SearchStrategy[list[int]]:
    few = st.lists(st.integers(0, 4), min_size=1, max_size=most)
    many = st.lists(st.integers(0, 1000), min_size=1, max_size=most)
    return few | many


def by_brute_force(sizes: list[int], objective: Objective, keeps_first: bool) -> int:
    """The least objective over every set of checkpoints."""
    last = len(sizes) - 1
    fixed = {0, last} if keeps_first else {last}
    others = [i for i in range(last) if i not in fixed]
    return min(
        objective(sizes, sorted({*fixed, *chosen}))
        for count in range(len(others) + 1)
        for chosen in combinations(others, count)
    )


@pytest.mark.parametrize(("segment", "objective", "keeps_first"), SEGMENTATIONS)
@given(chains(most=12))
def test_every_segmentation_equals_brute_force(
    segment: Callable[[Sequence[int]], Segmentation],
    objective: Objective,
    keeps_first: bool,
    sizes: list[int],
) -> None:
    found = segment(sizes)
    assert found.objective == objective(sizes, found.checkpoints)
    assert found.objective == by_brute_force(sizes, objective, keeps_first)


def test_every_segmentation_equals_brute_force_on_thousands_of_short_chains() -> None:
    random = np.random.default_rng(0)
    for _ in range(300):
        most = int(random.choice([2, 9, 1000]))
        sizes = [int(size) for size in random.integers(0, most, random.integers(1, 9))]
        for segment, objective, keeps_first in SEGMENTATIONS:
            assert segment(sizes).objective == by_brute_force(sizes, objective, keeps_first)


@given(chains(most=300))
def test_the_linear_form_equals_the_quadratic_one(sizes: list[int]) -> None:
    assert segment_revised(sizes).objective == segment_revised_directly(sizes).objective


@pytest.mark.parametrize("shape", sweep(["random", "rising", "falling", "flat"]))
def test_the_linear_form_holds_for_a_very_long_chain(shape: str) -> None:
    count = 300_000  # the quadratic form would take ten hours
    sizes = {
        "random": np.random.default_rng(0).integers(1, 10**6, count),
        "rising": np.arange(1, count + 1),
        "falling": np.arange(count, 0, -1),
        "flat": np.ones(count, dtype=np.int64),
    }[shape].tolist()
    found = segment_revised(sizes)
    assert found.checkpoints[0] == 0
    assert found.checkpoints[-1] == count - 1
    assert found.objective == objective_revised(sizes, found.checkpoints) < sum(sizes)


def test_a_chain_of_unit_layers_is_cut_near_its_square_root() -> None:
    found = segment_sum([1] * 100)
    assert found.objective == pytest.approx(2 * 100**0.5, abs=2)
