import numpy as np
from hypothesis import given

from solvers import ComputationGraph, Node, Schedule, simulate
from solvers.graph.matrices import least_recomputation, matrix_peak
from tests.graphs import random_graphs


def test_peak_of_a_diamond_by_hand() -> None:
    nodes = (
        Node("a", 1, 4),
        Node("b", 1, 1, dependencies=(0,)),
        Node("c", 1, 1, workspace=5, dependencies=(0,)),
        Node("d", 1, 1, dependencies=(1, 2)),
    )
    graph = ComputationGraph(nodes, fixed_bytes=100)
    R, S = least_recomputation(graph, np.tri(4, k=-1, dtype=np.bool_))
    assert np.array_equal(R, np.eye(4, dtype=np.bool_))
    assert matrix_peak(graph, R, S) == 100 + 4 + 1 + 1 + 5


@given(random_graphs())
def test_least_recomputation_always_gives_a_schedule(graph: ComputationGraph) -> None:
    for S in (
        np.zeros((len(graph),) * 2, dtype=np.bool_),
        np.tri(len(graph), k=-1, dtype=np.bool_),
    ):
        R, kept = least_recomputation(graph, S)
        assert (kept | S == kept).all()
        simulation = simulate(graph, Schedule.from_matrices(graph, R, kept))
        assert simulation.peak <= matrix_peak(graph, R, kept)


@given(random_graphs())
def test_matrices_of_a_schedule_have_its_peak(graph: ComputationGraph) -> None:
    schedule = Schedule(range(len(graph)))
    peak = matrix_peak(graph, *schedule.to_matrices(graph))
    assert peak == simulate(graph, schedule).peak
