import math

import pytest

from solvers import ComputationGraph, Node
from solvers.cutting_planes.free_order_bound import free_order_bound
from solvers.graph.layer_graphs import unit_chain
from tests.brute_force import budgets, cheapest, random_graph
from tests.costs import sweep

pytest.importorskip("highspy")

from solvers.programs.backends.highs import solve as highs


@pytest.mark.parametrize("first_seed", sweep(range(0, 1000, 100)))
def test_never_above_the_cheapest_schedule_of_any_order(first_seed: int) -> None:
    raised = 0
    for seed in range(first_seed, first_seed + 100):
        graph = random_graph(seed)
        for budget in budgets(graph):
            bound = free_order_bound(graph, budget, highs, 5)
            truth = cheapest(graph, budget, "free")
            assert truth is None or bound <= truth * (1 + 1e-6) + 1e-9
            raised += truth is not None and bound > graph.one_pass_cost
    assert raised > 2


def test_a_chain_has_one_order_and_its_bound() -> None:
    graph = unit_chain(8)
    bound = free_order_bound(graph, 5, highs, 10)
    assert 19 <= bound <= 22
    assert free_order_bound(graph, 2, highs, 10) == math.inf
    assert free_order_bound(graph, 10, highs, 10) == 17


def test_what_may_come_earlier_asks_for_nothing() -> None:
    """Reading a early, before b takes its room, is free in one order and not in another."""
    a = Node("a", 5, 4)
    b, c = Node("b", 1, 5), Node("c", 1, 1, dependencies=(1,))
    reader = Node("reader", 1, 1, dependencies=(0,))
    graph = ComputationGraph((a, b, c, reader))
    assert cheapest(graph, 7, "fixed") == 13
    assert cheapest(graph, 7, "free") == 8
    assert free_order_bound(graph, 7, highs, 10) == 8
