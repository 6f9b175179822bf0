from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers import ComputationGraph, Schedule, ScheduleError, simulate
from solvers.graph import BoolMatrix
from tests.graphs import DIAMOND, SKIP, random_graphs
from tests.messages import raises


def _matrix(text: str) -> BoolMatrix:
    return np.array([[each == "1" for each in row] for row in text.split()])


def test_steps_are_plain_numbers() -> None:
    schedule = Schedule(np.array([2, 0]))
    assert schedule == Schedule([2, 0])
    assert all(type(step) is int for step in schedule.steps)
    assert len(schedule) == 2


@pytest.mark.parametrize(
    ("graph", "steps", "R", "S"),
    [
        (DIAMOND, [0, 1, 2, 3], "1000 0100 0010 0001", "0000 1000 1100 0110"),
        # 0 is recomputed for 2, so stage 2 retains only 1
        (DIAMOND, [0, 1, 0, 2, 3], "1000 0100 1010 0001", "0000 1000 0100 0110"),
        # the columns follow the order of first computations: 0, 2, 1, 3
        (DIAMOND, [0, 2, 0, 1, 3], "1000 0100 1010 0001", "0000 1000 0100 0110"),
        (
            SKIP,
            [0, 1, 2, 3, 0, 4],
            "10000 01000 00100 00010 10001",
            "00000 10000 01000 00100 00010",
        ),
    ],
)
def test_matrices_by_hand(graph: ComputationGraph, steps: list[int], R: str, S: str) -> None:
    got_R, got_S = Schedule(steps).to_matrices(graph)
    assert np.array_equal(got_R, _matrix(R))
    assert np.array_equal(got_S, _matrix(S))


@pytest.mark.parametrize("steps", [[0, 1, 2, 3], [0, 1, 0, 2, 3], [0, 1, 2, 0, 1, 3]])
def test_matrices_give_the_schedule_back(steps: list[int]) -> None:
    assert Schedule.from_matrices(DIAMOND, *Schedule(steps).to_matrices(DIAMOND)).steps == tuple(
        steps
    )


def test_what_no_stage_has_room_for_is_left_out() -> None:
    R, S = Schedule([0, 1, 2, 3, 0]).to_matrices(DIAMOND)
    assert np.array_equal(R, np.eye(4, dtype=np.bool_))
    assert S.sum() == 5


def test_a_computation_for_nobody_is_left_out_of_the_matrices_schedule() -> None:
    R, S = Schedule([0, 1, 2, 3]).to_matrices(DIAMOND)
    R[3, 0] = R[2, 1] = True
    # In stage 2, node 1 is computed once more before 3 reads it; in stage 3, nobody reads 0.
    assert Schedule.from_matrices(DIAMOND, R, S).steps == (0, 1, 1, 2, 3)


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ((2, 3), ("stage 2", "node 3", "1c")),
        ((3, 0), ("stage 3", "node 0", "1c")),
        ((0, 1), ("stage 0", "node 1", "1d")),
    ],
)
def test_a_value_retained_from_nowhere_is_refused(
    place: tuple[int, int], told: tuple[str, ...]
) -> None:
    R, S = Schedule([0, 1, 2, 3]).to_matrices(DIAMOND)
    S[2, 0] = False
    S[place] = True
    with raises(ScheduleError, "retained-from-nowhere", *told):
        Schedule.from_matrices(DIAMOND, R, S)


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        ([0, 1, 2, 3], [0, 1, 2, 3]),
        ([0, 0, 1, 2, 3], [0, 0, 1, 2, 3]),  # the second is the one that 1 reads
        ([0, 1, 0, 2, 3, 0], [0, 1, 0, 2, 3]),
        ([0, 1, 2, 3, 0, 1], [0, 1, 2, 3]),  # 0 is read, but by a computation for nobody
        ([0, 1, 2, 0, 1, 3], [0, 1, 2, 0, 1, 3]),
        ([0, 1, 1, 1, 2, 3], [0, 1, 1, 2, 3]),
    ],
)
def test_without_useless(steps: list[int], kept: list[int]) -> None:
    assert Schedule(steps).without_useless(DIAMOND).steps == tuple(kept)


@given(random_graphs(), st.data())
def test_without_useless_never_costs_or_needs_more(
    graph: ComputationGraph, data: st.DataObject
) -> None:
    steps: list[int] = []
    for number in range(len(graph)):
        again = [
            each
            for each in range(number)
            if graph.nodes[each].recomputable
            and all(other >= number for other in graph.nodes[each].expired_by)
        ]
        if again:
            steps += sorted(data.draw(st.lists(st.sampled_from(again), max_size=3)))
        steps.append(number)
    schedule = Schedule(steps)
    less = schedule.without_useless(graph)
    before, after = simulate(graph, schedule), simulate(graph, less)
    assert after.peak <= before.peak
    assert after.cost <= before.cost
    assert less.without_useless(graph) == less
    R, S = less.to_matrices(graph)
    assert simulate(graph, Schedule.from_matrices(graph, R, S)).peak <= before.peak
