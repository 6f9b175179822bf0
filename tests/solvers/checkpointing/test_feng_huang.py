"""Feng and Huang's choice of checkpoints beside all choices of theirs, on small graphs."""

from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers import ComputationGraph, Node, Schedule, Status, simulate, solve
from solvers.checkpointing.feng_huang import Pieces, feng_huang_plans
from solvers.checkpointing.independent_segments import divide
from solvers.checkpointing.pieces import piece_matrices
from solvers.graph import input_order_peak
from solvers.graph.layer_graphs import Layer, layer_graph, unit_chain
from solvers.graph.matrices import matrix_peak
from tests.graphs import small_unet


def forward_only(*nodes: tuple[int, tuple[int, ...]]) -> ComputationGraph:
    """Nodes as (bytes, dependencies)."""
    return ComputationGraph(
        tuple(Node(f"{i}", 1, size, dependencies=read) for i, (size, read) in enumerate(nodes))
    )


@st.composite
def graphs(draw: st.DrawFn) -> ComputationGraph:
    """Mostly paths with shortcuts, sometimes with several inputs and with values nobody reads."""
    often = draw(st.sampled_from([0.2, 0.5, 0.8]))
    share = st.floats(0, 1)
    nodes = []
    for i in range(draw(st.integers(1, 10))):
        reads = {i - 1} if i and draw(share) < 0.9 else set()
        if i > 1 and draw(share) < often:
            reads.add(draw(st.integers(0, i - 2)))
        nodes.append((draw(st.integers(0, 4) | st.integers(0, 1000)), tuple(sorted(reads))))
    return forward_only(*nodes)


def value(graph: ComputationGraph, checkpoints: set[int]) -> int | None:
    """Σ of the checkpoints and the largest piece; None if three of them or more bound a piece."""
    connected = nx.Graph([(-1, 0)])
    connected.add_nodes_from(range(len(graph)))
    connected.add_edges_from(graph.edges)
    largest = 0
    inside = connected.subgraph(set(range(len(graph))) - checkpoints)
    for piece in nx.connected_components(inside):
        if len({other for node in piece for other in connected[node]} - piece) > 2:
            return None
        largest = max(largest, sum(graph.nodes[i].memory for i in piece))
    return largest + sum(graph.nodes[i].memory for i in checkpoints)


def by_brute_force(graph: ComputationGraph) -> int:
    """The least value of all sets of checkpoints on the way from the first node to the last."""
    last = len(graph) - 1
    closed = nx.Graph([(-1, 0), (-1, last), *graph.edges])
    blocks = nx.biconnected_components(closed)
    on_the_way = next(set(each) for each in blocks if {-1, last} <= each) - {-1, last}
    values = (
        value(graph, {*chosen, last})
        for count in range(len(on_the_way) + 1)
        for chosen in combinations(on_the_way, count)
    )
    return min(each for each in values if each is not None)


@given(graphs())
def test_the_least_objective_is_that_of_brute_force(graph: ComputationGraph) -> None:
    found = Pieces(graph).least()
    assert found.objective == value(graph, set(found.checkpoints))
    assert found.objective == by_brute_force(graph)


def test_what_three_nodes_bound_is_cut_as_a_whole() -> None:
    # A bridge circuit from 0 to 8: its corners are 1, 2, 6 and 7, and on one side are 3, 4 and 5.
    bridge = forward_only(
        (1, ()), (1, (0,)), (1, (0,)), (50, (1,)), (50, (3,)), (50, (4,)), (1, (2, 5)),
        (1, (1, 2)), (1, (6, 7)),
    )  # fmt: skip
    connected = nx.Graph(bridge.edges)
    rigid = [each for each in divide(connected, 0, 8).segments if each.kind == "rigid"]
    assert [(each.start, each.end, each.cuts) for each in rigid] == [(0, 8, (1, 2, 6, 7))]
    # Its corners and ends are cut, and the side in the middle, so that 3 and 5 are pieces.
    found = Pieces(bridge).least()
    assert found.checkpoints == (0, 1, 2, 4, 6, 7, 8)
    assert found.objective == by_brute_force(bridge) == 6 + 50 + 50


@given(st.lists(st.integers(1, 50), min_size=2, max_size=14))
def test_every_plan_computes_a_forward_node_twice_at_most(sizes: list[int]) -> None:
    layers = [Layer(f"{i}", 1, size) for i, size in enumerate(sizes)]
    layers[-1] = Layer("sum", 1, 1, inputs=(0, len(sizes) - 2))
    graph = layer_graph("skip", layers)
    for R, S in feng_huang_plans(graph):
        steps = Schedule.from_matrices(graph, R, S).steps
        counts = [steps.count(node) for node in range(len(graph))]
        assert max(counts) <= 2
        assert set(counts[len(layers) :]) == {1}  # gradients
        assert simulate(graph, Schedule(steps)).peak <= matrix_peak(graph, R, S)


def test_one_branch_is_recomputed_without_the_other() -> None:
    # Node 0 is read by two branches of three, which the last one adds up.
    inputs = [(), (0,), (1,), (2,), (0,), (4,), (5,), (3, 6)]
    layers = [Layer(f"{i}", 1, 10, inputs=read) for i, read in enumerate(inputs)]
    graph = layer_graph("branches", layers)
    R, S = piece_matrices(graph, [0, 7])
    steps = Schedule.from_matrices(graph, R, S).steps
    assert steps[:9] == tuple(range(9))
    assert sorted(steps[9:]) == [1, 2, 3, *range(9, 17)]  # 4 to 6 come last and are still there


def test_a_network_of_residuals_needs_about_its_square_root() -> None:
    blocks = 36
    layers = [Layer("input", 1, 1)]
    for _ in range(blocks):
        first = len(layers) - 1
        layers += [Layer("a", 1, 1), Layer("b", 1, 1), Layer("sum", 1, 1)]
        layers[-1] = Layer("sum", 1, 1, inputs=(first, first + 2))
    graph = layer_graph("residuals", layers)
    assert Pieces(graph).least().objective == pytest.approx(4 * 2 * (3 * blocks) ** 0.5, rel=0.1)
    solution = solve(graph, 0.3, "feng_huang")
    assert solution.schedule is not None
    assert solution.cost is not None
    assert solution.cost <= graph.one_pass_cost + len(layers)


def test_with_more_memory_less_is_computed_again() -> None:
    unet = small_unet()
    costs = [solve(unet, share, "feng_huang").cost for share in (0.7, 0.85, 1.0)]
    assert None not in costs
    assert costs == sorted(costs, reverse=True)  # type: ignore[type-var]
    assert costs[-1] == unet.one_pass_cost < (costs[0] or 0)


def test_over_budget_it_tells_what_it_needs() -> None:
    chain = unit_chain(16)
    given_up = solve(chain, 4, "feng_huang")
    assert given_up.status is Status.TIMEOUT
    assert given_up.least_budget is not None
    assert 4 < given_up.least_budget < input_order_peak(chain)
    assert solve(chain, given_up.least_budget, "feng_huang").schedule is not None
    by_matrices = solve(chain, 4, "feng_huang", accounting="matrices")
    assert (by_matrices.least_budget or 0) >= given_up.least_budget
