import sys
from functools import cache

import pytest

from solvers import Schedule, SolverError, simulate, solve
from solvers.checkpointing.checkpoints import forward_nodes
from solvers.checkpointing.griewank import _splits, griewank_matrices
from solvers.checkpointing.heuristics import solve_chen_greedy
from solvers.graph.layer_graphs import unit_chain, vgg16
from solvers.problem import Problem
from tests.graphs import U_SHAPE
from tests.messages import raises


@cache
def by_dynamic_program(steps: int, checkpoints: int) -> int:
    """The least forward steps, over every place of the next checkpoint."""
    if steps <= 1:
        return 0
    if checkpoints == 1:
        return steps * (steps - 1) // 2
    return min(
        ahead
        + by_dynamic_program(ahead, checkpoints)
        + by_dynamic_program(steps - ahead, checkpoints - 1)
        for ahead in range(1, steps)
    )


@pytest.mark.parametrize("layers", [1, 2, 5, 8, 16, 31])
def test_schedules_take_the_least_forward_steps(layers: int) -> None:
    chain = unit_chain(layers)
    for slots in range(layers + 1):
        simulation = simulate(
            chain, Schedule.from_matrices(chain, *griewank_matrices(chain, slots))
        )
        assert simulation.cost == by_dynamic_program(layers + 1, slots + 1) + layers + 1
        assert simulation.peak <= slots + 3


def test_more_budget_never_costs_more() -> None:
    costs = [solve(unit_chain(16), budget, "griewank").cost for budget in range(3, 19)]
    assert None not in costs
    assert costs == sorted(costs, reverse=True, key=float)  # type: ignore[arg-type]
    assert costs[-1] == unit_chain(16).one_pass_cost


def test_it_beats_one_level_of_segments_where_memory_is_short() -> None:
    graph = unit_chain(32)
    budget = 7
    revolve = solve(graph, budget, "griewank")
    assert revolve.cost is not None
    assert solve_chen_greedy(Problem(graph, budget)).schedule is None


def test_a_network_has_more_than_unit_layers() -> None:
    graph = vgg16()
    assert len(forward_nodes(graph)) == 22
    assert solve(graph, "95%", "griewank").schedule is not None


def test_a_chain_may_be_longer_than_python_calls_may_be_deep() -> None:
    layers = sys.getrecursionlimit() + 10
    splits = list(_splits(0, layers + 1, layers + 1))
    assert sorted(middle for middle, _ in splits) == list(range(1, layers + 1))


def test_it_refuses_what_is_not_a_chain() -> None:
    with raises(SolverError, "graph-not-a-chain"):
        solve(U_SHAPE, "90%", "griewank")
