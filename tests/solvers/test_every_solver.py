"""Every solver of the registry on the same graphs: what it answers is true."""

import pytest
from hypothesis import given, settings

from solvers import SOLVERS, ComputationGraph, Solution, SolverError, Status, simulate, solve
from solvers.graph import input_order_peak
from tests.brute_force import cheapest
from tests.graphs import NAMED, random_graphs

EXACT = ("milp", "cutting_planes", "auto")
ENOUGH = 600
"""Seconds; exact solvers end when they have a proof, which takes these graphs less than one."""

QUICK = [name for name in SOLVERS if name not in ("search", "auto", "milp_unpartitioned")]


def check(graph: ComputationGraph, budget: int, solution: Solution) -> None:
    """Fail unless the answer is what its status says."""
    if solution.schedule is None:
        assert solution.status in (Status.INFEASIBLE, Status.TIMEOUT)
        assert solution.cost is solution.peak is None
        return
    assert solution.status in (Status.OPTIMAL, Status.FEASIBLE)
    simulation = simulate(graph, solution.schedule)
    assert (simulation.cost, simulation.peak) == (solution.cost, solution.peak)
    assert simulation.peak <= budget
    assert set(solution.schedule.steps) == set(range(len(graph)))
    assert solution.bound is None or simulation.cost >= solution.bound - 1e-6


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("title", NAMED)
def test_named_graphs(name: str, title: str) -> None:
    case = NAMED[title]
    for budget, least in case.optima.items():
        if name == "milp_unpartitioned" and len(case.graph) > 10:
            pytest.skip("the unpartitioned form takes hours here")
        try:
            limit = ENOUGH if name in EXACT and least is not None else 1
            solution = solve(case.graph, budget, name, limit)
        except SolverError:
            if SOLVERS[name].valid_on == "any":
                raise
            return
        check(case.graph, budget, solution)
        if least is None:
            assert solution.schedule is None
        elif solution.cost is not None:
            assert solution.cost >= least
        if name in EXACT and least is not None:
            assert solution.cost == least


@settings(max_examples=40)
@given(random_graphs(most=7))
def test_random_graphs(graph: ComputationGraph) -> None:
    budget = max(1, int(0.75 * input_order_peak(graph)))
    truth = cheapest(graph, budget)
    for name in QUICK:
        try:
            solution = solve(graph, budget, name, time_limit=5)
        except SolverError:
            continue
        check(graph, budget, solution)
        if truth is None:
            assert solution.schedule is None
        else:
            assert solution.status is not Status.INFEASIBLE
            assert solution.cost is None or solution.cost >= truth
            assert not solution.bound or solution.among or solution.bound <= truth + 1e-6
