"""The ablation changes constants that exist, and reports what a chain really found."""

from __future__ import annotations

import pytest

pytest.importorskip("numba")

from experiments.ablation import OTHER_SEEDS, SEEDS, VARIATIONS, as_table, search, tasks
from solvers import solve
from solvers.local_search import settings


def test_every_variation_changes_a_constant_of_the_search() -> None:
    for name, changes in VARIATIONS.items():
        assert bool(changes) == (name != "as it is")
        for constant, value in changes.items():
            assert getattr(settings, constant) != value, name
    assert not set(SEEDS) & set(OTHER_SEEDS)


@pytest.mark.slow
def test_what_a_chain_finds_is_no_better_than_the_bound() -> None:
    (task,) = tasks(quick=True)
    result = search(task, seed=7)
    assert search(task, seed=7).overhead == result.overhead, "the moves are counted, not timed"
    bounded = solve(task.graph, task.budget / 100, "auto", 20, order="free")
    assert bounded.bound is not None
    # A bound may hold for one order of the nodes only; the chain is free to find another.
    bound = bounded.bound if bounded.bound_order == "free" else task.graph.one_pass_cost
    assert result.overhead is None or 1 + result.overhead / 100 >= bound / task.graph.one_pass_cost
    assert as_table({"as it is": [result]}).row_count == 1
