import time
from dataclasses import replace

import numpy as np
import pytest

from solvers import ComputationGraph, Node, Schedule, Status, simulate, solve
from solvers.graph import input_order_peak
from solvers.graph.layer_graphs import unit_chain
from solvers.local_search.chain import Chain, compile_kernels
from solvers.local_search.changes import keep_best
from solvers.local_search.layout import memory_unit
from solvers.local_search.least_memory import least_memory_found
from solvers.local_search.search import Search, Start
from solvers.local_search.search_state import COMPUTATIONS, VIOLATION
from solvers.local_search.settings import COLD, HOT
from tests.brute_force import budgets, cheapest, check_against_truth, random_graph
from tests.graphs import NAMED

pytest.importorskip("numba")


@pytest.mark.parametrize("order", ["fixed", "free"])
def test_a_search_state_is_what_the_simulator_says(order: str) -> None:
    for seed in range(60):
        graph = random_graph(seed, most_nodes=12)
        budget = max(1, int(0.7 * (input_order_peak(graph) - graph.fixed_bytes)))
        chain = Chain(graph, order, seed)  # type: ignore[arg-type]
        chain.start(Schedule(range(len(graph))), budget)
        for _ in range(5):
            chain.run(300, HOT, COLD, float("inf"))
            state = chain.state
            length = keep_best(state)
            simulation = simulate(graph, Schedule(state.best[:length]))
            used = np.flatnonzero(state.node_at >= 0)
            assert chain.bytes_per_unit == 1
            profile = (state.profile + state.block_addend[:, None] + budget).ravel()
            assert (profile[used] + graph.fixed_bytes == simulation.timeline).all()
            assert state.total_cost[0] == pytest.approx(simulation.cost)
            assert state.totals[COMPUTATIONS] == length
            assert (state.totals[VIOLATION] == 0) == (simulation.peak <= budget + graph.fixed_bytes)


@pytest.mark.parametrize(
    ("sizes", "unit"),
    [
        ((3, 5), 1),
        ((6, 10), 2),
        ((2**30, 2**31), 2**30),  # a common divisor loses nothing
        ((2**30 + 1, 2**30), 65),
    ],
)
def test_a_unit_of_memory_is_no_larger_than_it_must_be(sizes: tuple[int, int], unit: int) -> None:
    nodes = tuple(Node(str(i), 1.0, size) for i, size in enumerate(sizes))
    assert memory_unit(ComputationGraph(nodes)) == unit


def test_sizes_that_are_rounded_never_hide_a_violation() -> None:
    """Bytes far beyond 32 bits, odd so that nothing divides them all."""
    under = 0
    for seed in range(60):
        small = random_graph(seed, most_nodes=10)
        nodes = [
            replace(node, memory=2**33 * node.memory + 2 * i + 1)
            for i, node in enumerate(small.nodes)
        ]
        graph = replace(small, nodes=tuple(nodes))
        assert memory_unit(graph) > 1
        budget = int(0.9 * (input_order_peak(graph) - graph.fixed_bytes))
        chain = Chain(graph, "free", seed)
        chain.start(Schedule(range(len(graph))), budget)
        found = chain.run(2000, HOT, COLD, float("inf"))
        if found is not None:
            under += 1
            assert simulate(graph, found).peak <= budget + graph.fixed_bytes
    assert under >= 5


@pytest.mark.parametrize("order", ["fixed", "free"])
def test_reaches_the_optimum_of_tiny_graphs(order: str) -> None:
    feasible = reached = 0
    for seed in range(5):
        graph = random_graph(seed, most_nodes=7)
        for budget in budgets(graph):
            truth = cheapest(graph, budget, order)
            solution = solve(graph, budget, "search", 5, order=order)  # type: ignore[arg-type]
            check_against_truth(solution, truth)
            feasible += truth is not None
            reached += truth is not None and solution.cost == pytest.approx(truth)
    assert reached >= 0.95 * feasible


def test_the_fixed_order_stays() -> None:
    graph = random_graph(5)
    solution = solve(graph, 0.9, "search", 2, order="fixed")
    if solution.schedule is not None:
        assert list(dict.fromkeys(solution.schedule.steps)) == list(range(len(graph)))


def test_least_memory_of_a_chain() -> None:
    """Each gradient reads its activation: recomputing needs 4 bytes at any length."""
    graph = replace(unit_chain(4), fixed_bytes=10)
    schedule, peak = least_memory_found(graph, "fixed", compile_kernels() + 1e9)
    assert simulate(graph, schedule).peak == peak
    assert cheapest(graph, peak) is not None
    assert cheapest(graph, peak - 1) is None


def test_a_hopeless_budget_tells_the_least_that_was_found() -> None:
    solution = solve(NAMED["diamond"].graph, 5, "search", 3)
    assert solution.status is Status.TIMEOUT
    assert solution.least_budget == 6


def test_a_round_that_ends_over_budget_still_gives_a_leaner_start() -> None:
    graph = unit_chain(32)
    in_order = Schedule(range(len(graph)))
    search = Search(graph, 2, "fixed", seed=0, chains=1)  # a node and what it reads take 3
    search.offer(in_order)
    search.round([Start(in_order, HOT)], 50_000, time.monotonic() + 60, 0.0, lambda *_: None)
    assert search.schedule is None
    assert search.leanest is not None
    assert simulate(graph, search.leanest).peak == search.least_peak
    assert search.least_peak < simulate(graph, in_order).peak // 2
