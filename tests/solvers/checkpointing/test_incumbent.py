from __future__ import annotations

import time

import pytest

from solvers import SOLVERS, ComputationGraph, Problem, SolverError, Status, simulate, solve
from solvers.checkpointing.incumbent import Incumbent
from solvers.graph import input_order_peak
from solvers.graph.layer_graphs import unit_chain, vgg16
from solvers.programs.linear_program import LinearModel, LinearResult
from tests.costs import sweep
from tests.graphs import NAMED, U_SHAPE, shared_graph

RULES = [
    name
    for name, entry in SOLVERS.items()
    if entry.kind in ("heuristic", "dynamic program") and name != "lp_rounding"
]


def best_of_rules(graph: ComputationGraph, budget: int | str) -> float:
    """The least cost of all rules that are valid on the graph, asked one by one."""
    costs = [float("inf")]
    for name in RULES:
        try:
            costs.append(solve(graph, budget, name).cost or float("inf"))
        except SolverError:
            continue
    return min(costs)


@pytest.mark.parametrize(
    "graph", [unit_chain(12), vgg16(), U_SHAPE, *(case.graph for case in NAMED.values())]
)
@pytest.mark.parametrize("share", [0.9, 0.7, 0.5])
def test_no_rule_is_better(graph: ComputationGraph, share: float) -> None:
    budget = graph.fixed_bytes + int(share * (input_order_peak(graph) - graph.fixed_bytes))
    incumbent = Incumbent(Problem(graph, budget))
    incumbent.work(30)
    best = best_of_rules(graph, budget)
    assert incumbent.cost == best
    if incumbent.schedule is not None:
        simulation = simulate(graph, incumbent.schedule)
        assert (simulation.cost, simulation.peak <= budget) == (best, True)


def test_what_is_offered_counts_only_under_budget_and_where_it_is_cheaper() -> None:
    graph = NAMED["skip"].graph
    once = solve(graph, 9, "checkpoint_all").schedule
    twice = solve(graph, 6, "cutting_planes").schedule
    assert once is not None
    assert twice is not None
    incumbent = Incumbent(Problem(graph, 8))
    incumbent.offer(once)
    assert (incumbent.schedule, incumbent.least_budget) == (None, 9)
    incumbent.offer(twice)
    assert (incumbent.schedule, incumbent.cost, incumbent.least_budget) == (twice, 6, 6)


def test_it_ends_with_the_time_limit_and_goes_on_where_it_was() -> None:
    graph = shared_graph("resnet50_b256_train")
    problem = Problem(graph, int(0.9 * input_order_peak(graph)), time_limit=0.01)
    late = Incumbent(problem)
    time.sleep(0.02)
    late.work(30)
    assert late.schedule is None
    incumbent = Incumbent(Problem(graph, problem.budget, time_limit=100))
    for _ in range(5):
        incumbent.work(0.001)  # one plan at least
    assert incumbent.plans == 5


def finds_nothing(model: LinearModel, *, time_limit: float, **how: object) -> LinearResult:
    """A backend that takes all the time it is given."""
    time.sleep(time_limit)
    return LinearResult(Status.TIMEOUT, None, None, None)


@pytest.mark.parametrize("solver", sweep(["milp", "cutting_planes", "lp_rounding"]))
def test_a_stopped_solver_is_no_worse_than_the_rules(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solvers.programs.optimize.stoppable", lambda name, stop: finds_nothing)
    graph = unit_chain(12)
    solution = solve(graph, 8, solver, time_limit=3)
    assert solution.status is Status.FEASIBLE
    assert solution.cost == best_of_rules(graph, 8)
    assert "a heuristic's answer" in solution.note
