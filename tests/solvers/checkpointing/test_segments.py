import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers import ComputationGraph, Node, SolverError, Status, simulate, solve
from solvers.checkpointing.segments import segment_schedule
from solvers.graph import input_order_peak
from solvers.graph.layer_graphs import Layer, layer_graph, unit_chain
from tests.graphs import U_SHAPE
from tests.messages import raises

NAMES = ["segment_sum", "segment_traced", "segment_revised"]


@st.composite
def layer_graphs(draw: st.DrawFn) -> ComputationGraph:
    """Training graphs of chains with outputs of any sizes."""
    sizes = draw(st.lists(st.integers(1, 50), min_size=2, max_size=14))
    layers = [Layer(f"layer{number}", 1, size) for number, size in enumerate(sizes)]
    return layer_graph("chain", layers)


@pytest.mark.parametrize("name", NAMES)
def test_the_plan_is_returned_with_both_peaks(name: str) -> None:
    chain = unit_chain(36)
    solution = solve(chain, input_order_peak(chain), name)
    assert solution.schedule is not None
    assert solution.peak == solution.statistics["simulated_peak"]
    assert solution.peak is not None
    assert solution.peak < input_order_peak(chain) / 2
    assert solution.statistics["objective"] < 16
    assert solution.cost is not None
    assert solution.cost <= chain.one_pass_cost + 36


@given(layer_graphs())
def test_a_segment_is_recomputed_at_most_once(graph: ComputationGraph) -> None:
    for name in NAMES:
        solution = solve(graph, 10**9, name)
        assert solution.schedule is not None
        steps = solution.schedule.steps
        assert all(steps.count(node) <= 2 for node in range(len(graph)))
        assert simulate(graph, solution.schedule).peak == solution.peak


def test_a_stateful_layer_is_kept() -> None:
    chain = unit_chain(6)
    nodes = list(chain.nodes)
    nodes[2] = Node("stateful", 1, 1, recomputable=False, dependencies=(1,))
    graph = ComputationGraph(tuple(nodes))
    assert segment_schedule(graph, [0, 5]).steps.count(2) == 1


@pytest.mark.parametrize("name", NAMES)
def test_over_budget_it_tells_what_it_needs(name: str) -> None:
    solution = solve(unit_chain(16), 3, name)
    assert solution.status is Status.TIMEOUT
    assert solution.least_budget is not None


@pytest.mark.parametrize("name", NAMES)
def test_segmentations_refuse_what_is_not_a_chain(name: str) -> None:
    with raises(SolverError, "graph-not-a-chain"):
        solve(U_SHAPE, "90%", name)


@pytest.mark.parametrize("name", [*NAMES, "griewank"])
def test_a_graph_without_forward_nodes_is_no_chain(name: str) -> None:
    """As that of a step on an empty batch, whose gradients alone are computed."""
    graph = ComputationGraph(tuple(Node(f"gradient{i}", 1, 1, backward=True) for i in range(3)))
    with raises(SolverError, "graph-not-a-chain"):
        solve(graph, "90%", name)
    assert solve(graph, "min", "auto", 1.0).schedule is not None
