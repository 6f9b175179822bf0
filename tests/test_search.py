from dataclasses import replace

import numpy as np
import pytest

from solvers import Schedule, Status, simulate, solve
from solvers.layer_graphs import unit_chain
from solvers.search import COLD, HOT, Chain, compile_kernels, least_memory_found
from solvers.tape import BLOCK, COMPUTATIONS, EXCESS, keep_best
from tests.brute_force import budgets, cheapest, random_graph
from tests.test_moments import check_against_truth

pytest.importorskip("numba")


@pytest.mark.parametrize("order", ["fixed", "free"])
def test_what_is_on_the_tape_is_what_the_simulator_says(order: str) -> None:
    for seed in range(60):
        graph = random_graph(seed, most_nodes=12)
        budget = max(1, int(0.7 * (graph.input_order_peak - graph.fixed_bytes)))
        chain = Chain(graph, order, seed)  # type: ignore[arg-type]
        chain.start(Schedule(range(len(graph))), budget)
        for _ in range(5):
            chain.run(300, HOT, COLD, float("inf"))
            tape = chain.tape
            length = keep_best(tape)
            simulation = simulate(graph, Schedule(tape.best[:length]))
            used = np.flatnonzero(tape.occupant >= 0)
            profile = tape.profile + np.repeat(tape.addend, BLOCK) + budget
            assert (profile[used] + graph.fixed_bytes == simulation.timeline).all()
            assert tape.total_cost[0] == pytest.approx(simulation.cost)
            assert tape.totals[COMPUTATIONS] == length
            assert (tape.totals[EXCESS] == 0) == (simulation.peak <= budget + graph.fixed_bytes)


@pytest.mark.parametrize("order", ["fixed", "free"])
def test_reaches_the_optimum_of_tiny_graphs(order: str) -> None:
    feasible = reached = 0
    for seed in range(12):
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
    solution = solve(unit_chain(16), 3, "search", 3)
    assert solution.status is Status.TIMEOUT
    assert solution.least_budget is not None
    assert 3 < solution.least_budget < 17
