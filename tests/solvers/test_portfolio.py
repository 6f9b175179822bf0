from dataclasses import replace

import pytest

from experiments.layered_graphs import layered_graph
from solvers import Progress, SolverError, Status, simulate, solve
from solvers.graph import input_order_peak
from solvers.graph.layer_graphs import unit_chain
from solvers.local_search.chain import compile_kernels
from solvers.problem import Enough
from tests.brute_force import budgets, cheapest, check_against_truth, random_graph
from tests.graphs import shared_graph
from tests.messages import raises


@pytest.mark.parametrize("order", ["fixed", "free"])
def test_right_about_tiny_graphs(order: str) -> None:
    for seed in range(100, 110):
        graph = random_graph(seed, most_nodes=7)
        for budget in budgets(graph):
            truth = cheapest(graph, budget, order)
            solution = solve(graph, budget, "auto", 3, order=order)  # type: ignore[arg-type]
            if order == "free" and solution.bound_order == "fixed" and solution.bound is not None:
                # The bound is for one order: another one may cost less, this one may not.
                assert solution.cost is not None
                assert solution.bound <= solution.cost + 1e-9
                solution = replace(solution, bound=None)
            check_against_truth(solution, truth)
            assert truth is None or solution.schedule is not None


@pytest.mark.parametrize("solver", ["auto", "search"])
def test_a_free_order_that_starts_from_a_fixed_one_is_never_dearer(solver: str) -> None:
    graphs = [random_graph(seed, most_nodes=9) for seed in range(200, 206)]
    for graph in (*graphs, layered_graph(50, 110)):
        budget = int(0.7 * input_order_peak(graph))
        fixed = solve(graph, budget, "auto", 0.5)
        if fixed.schedule is None:
            continue
        free = solve(graph, budget, solver, 0.2, order="free", starts=[fixed.schedule])
        assert free.schedule is not None
        assert free.cost is not None
        assert fixed.cost is not None
        assert free.cost <= fixed.cost


def test_one_pass_is_enough_at_once() -> None:
    graph = unit_chain(16)
    solution = solve(graph, 1.0, "auto", 600, order="free")
    assert solution.status is Status.OPTIMAL
    assert solution.cost == graph.one_pass_cost
    assert solution.seconds < 500


def test_a_node_over_budget_is_a_proof() -> None:
    solution = solve(unit_chain(4), 2, "auto", 60, order="free")
    assert solution.status is Status.INFEASIBLE


@pytest.mark.parametrize("order", ["fixed", "free"])
def test_time_limit_and_progress(order: str) -> None:
    told: list[Progress] = []
    compile_kernels()
    graph = unit_chain(60)
    solution = solve(graph, 0.3, "auto", 4, order=order, on_progress=told.append)  # type: ignore[arg-type]
    assert solution.schedule is not None
    assert simulate(graph, solution.schedule).peak <= 0.3 * input_order_peak(graph)
    costs = [each.cost for each in told if each.cost is not None]
    assert costs
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("how", [KeyboardInterrupt, Enough])
def test_an_interrupt_gets_the_incumbent(how: type[BaseException]) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.cost is not None:
            raise how

    solution = solve(unit_chain(60), 0.3, "auto", 600, order="free", on_progress=interrupt)
    assert solution.schedule is not None
    assert solution.seconds < 500


def test_a_bound_for_every_order_is_told_as_such() -> None:
    """Of a chain there is one order, so both bounds are one; the optimum at 6 is 21."""
    solution = solve(unit_chain(8), 6, "auto", 10, order="free")
    assert solution.bound_order == "free"
    assert solution.cost == 21
    assert solution.bound is not None
    assert 17 < solution.bound <= 21


def test_no_order_may_be_a_proof_too() -> None:
    """A budget that every node fits in alone, and no order all of them."""
    graph = unit_chain(8)
    pinned = replace(graph, nodes=tuple(replace(node, recomputable=False) for node in graph.nodes))
    solution = solve(pinned, 5, "auto", 10, order="free")
    assert solution.status is Status.INFEASIBLE
    assert cheapest(pinned, 5, "free") is None


@pytest.mark.parametrize("solver", ["auto", "cutting_planes", "milp", "lp_bound"])
def test_backends_mean_the_same_to_every_solver(solver: str) -> None:
    graph = unit_chain(6)
    theirs = solve(graph, 6, solver, 10, backend="cvxpy:SCIPY")
    own = solve(graph, 6, solver, 10)
    assert (theirs.status, theirs.cost) == (own.status, own.cost)
    for name, named in {
        "highs:SCIPY": "'highs:SCIPY'",
        "cvxpy:nowhere": "'nowhere'",
        "nowhere": "highs, cvxpy, gurobi",
    }.items():
        with raises(SolverError, "backend-unknown", named):
            solve(graph, 6, solver, 10, backend=name)


@pytest.mark.parametrize("solver", ["auto", "search"])
def test_a_chain_that_needs_more_recomputations_than_the_search_has_room_for(solver: str) -> None:
    """With 3 bytes each of 40 layers is computed up to 41 times, more often than the search can."""
    graph = unit_chain(40)
    solution = solve(graph, 3, solver, 3)
    by_rule = solve(graph, 3, "checkpoint_last")
    assert by_rule.cost is not None
    assert solution.cost is not None
    assert solution.cost <= by_rule.cost
    # The proof, where there is one, holds for every number of recomputations.
    proved = solution.status is Status.OPTIMAL
    assert proved or "a node at most 20 times" in solution.note


@pytest.mark.slow
def test_where_local_moves_get_stuck_relaxations_are_about_that_place() -> None:
    """Its least peak by moves alone is 0.6 % above this budget: five values change at once."""

    def stop(progress: Progress) -> None:
        if progress.cost is not None:
            raise Enough

    graph = shared_graph("random_layered_n250")
    solution = solve(graph, 0.7, "auto", 300, on_progress=stop)
    assert solution.schedule is not None
    assert simulate(graph, solution.schedule).peak <= 0.7 * input_order_peak(graph)
