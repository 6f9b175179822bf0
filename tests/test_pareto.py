import pytest

from solvers import BudgetError
from solvers.layer_graphs import unit_chain
from solvers.pareto import pareto


def test_costs_fall_as_the_budget_grows() -> None:
    solutions = pareto(unit_chain(16), [0.3, 0.5, 0.7, 1.0], 8)
    costs = [each.cost for each in solutions if each.cost is not None]
    assert len(costs) == 4
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == 33


def test_answers_come_in_the_order_asked() -> None:
    high, hopeless = pareto(unit_chain(8), [10, 2], 5, order="fixed")
    assert high.cost == 17
    assert hopeless.schedule is None


def test_a_budget_that_is_none() -> None:
    with pytest.raises(BudgetError):
        pareto(unit_chain(8), ["a lot"])
