import pytest

from experiments.layered_graphs import layered_graph
from solvers import BudgetError, SolverError, Status, simulate, solve
from solvers.comparison import cases
from solvers.graph import input_order_peak
from solvers.graph.bounds import memory_bound
from solvers.graph.layer_graphs import unit_chain
from solvers.graph.order import Order
from solvers.local_search.least_memory import find_least_memory
from tests.brute_force import cheapest, random_graph
from tests.messages import raises

pytest.importorskip("highspy")

ORDERS: tuple[Order, ...] = ("fixed", "free")


@pytest.mark.parametrize("order", ORDERS)
def test_what_is_provable_is_not_above_the_truth(order: Order) -> None:
    """One byte less than the truth is infeasible, so a bound above it would be wrong."""
    tight = 0
    for seed in range(150):
        graph = random_graph(seed)
        bound = memory_bound(graph, order)
        peak = input_order_peak(graph)
        least = next(
            size for size in range(1, peak + 1) if cheapest(graph, size, order) is not None
        )
        assert bound <= least
        tight += bound == least
    assert tight > 75


@pytest.mark.parametrize("order", ORDERS)
def test_found_and_provable_enclose_the_truth(order: Order) -> None:
    for seed in range(12):
        graph = random_graph(seed)
        least = find_least_memory(graph, order, time_limit=1)
        assert simulate(graph, least.schedule).peak == least.peak
        assert cheapest(graph, least.peak, order) is not None
        assert least.bound <= least.peak
        if least.bound > graph.fixed_bytes:
            assert cheapest(graph, least.bound - 1, order) is None


@pytest.mark.parametrize("solver", ["auto", "search"])
def test_the_least_memory_as_a_budget(solver: str) -> None:
    graph = unit_chain(8)
    solution = solve(graph, "min", solver, time_limit=4)
    assert (solution.peak, solution.least_budget, solution.provable_budget) == (3, 3, 3)
    assert solution.cost is not None
    assert solution.cost >= cheapest(graph, 3) - 1e-9
    assert solution.status in (Status.OPTIMAL, Status.FEASIBLE)


@pytest.mark.parametrize("solver", ["auto", "search"])
def test_the_least_is_no_more_than_the_answer_needs(solver: str) -> None:
    """The cheapest schedule that fits within the leanest peak often ends a few bytes below it."""
    graph = layered_graph(100, 236)
    for seed in range(5):
        solution = solve(graph, "min", solver, time_limit=0.6, order="free", seed=seed)
        assert solution.schedule is not None
        assert solution.least_budget == simulate(graph, solution.schedule).peak


def test_who_cannot_search_for_the_least_says_so() -> None:
    with raises(SolverError, "solver-without-starts", "auto, search", "'milp'"):
        solve(unit_chain(8), "min", "milp")
    with raises(BudgetError, "budget-min-not-searched"):
        cases([unit_chain(8)], ["min"], ["auto"])


def test_an_answer_without_a_schedule_tells_what_no_budget_can_do_without() -> None:
    assert solve(unit_chain(8), 3, "checkpoint_all").provable_budget == 3
    assert solve(unit_chain(8), 10, "checkpoint_all").provable_budget is None
