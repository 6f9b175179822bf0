from hypothesis import given

from solvers import ComputationGraph, Schedule, simulate
from solvers.checkmate.repair import repair
from solvers.graph import input_order_peak
from solvers.graph.layer_graphs import unit_chain
from tests.graphs import random_graphs


def test_a_chain_is_brought_under_budget() -> None:
    chain = unit_chain(8)
    schedule = repair(chain, Schedule(range(len(chain))), 6)
    assert schedule is not None
    assert simulate(chain, schedule).peak <= 6


def test_what_already_fits_is_left_alone() -> None:
    chain = unit_chain(8)
    schedule = Schedule(range(len(chain)))
    assert repair(chain, schedule, 10) == schedule


@given(random_graphs())
def test_a_repaired_schedule_is_under_budget(graph: ComputationGraph) -> None:
    budget = int(0.8 * input_order_peak(graph))
    schedule = repair(graph, Schedule(range(len(graph))), budget)
    assert schedule is None or simulate(graph, schedule).peak <= budget
