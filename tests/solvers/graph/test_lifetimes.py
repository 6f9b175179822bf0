"""Who is held when, beside the simulator's own count."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from solvers import ComputationGraph, Schedule, simulate
from solvers.graph.lifetimes import held_at
from tests.graphs import SKIP, random_graphs


def test_a_value_that_is_computed_twice_is_not_held_in_between() -> None:
    schedule = Schedule([0, 1, 2, 0, 3, 4])
    held = [held_at(SKIP, schedule, place) for place in range(len(schedule))]
    assert [sorted(each) for each in held] == [[0], [0, 1], [1, 2], [0, 2], [0, 2, 3], [0, 3, 4]]


def random_schedule(graph: ComputationGraph, data: st.DataObject) -> Schedule:
    """Every node in order; in between, some that may be computed again."""
    steps: list[int] = []
    for number in range(len(graph)):
        steps.append(number)
        again = [
            node
            for node in range(number + 1)
            if graph.nodes[node].recomputable
            and not any(each <= number for each in graph.nodes[node].expired_by)
        ]
        if again:
            steps += data.draw(st.lists(st.sampled_from(again), max_size=2))
    return Schedule(steps)


@given(random_graphs(), st.data())
def test_all_that_is_held_is_what_the_simulator_counts(
    graph: ComputationGraph, data: st.DataObject
) -> None:
    schedule = random_schedule(graph, data)
    timeline = simulate(graph, schedule).timeline
    for place, number in enumerate(schedule.steps):
        held = sum(held_at(graph, schedule, place).values())
        assert held + graph.nodes[number].workspace + graph.fixed_bytes == timeline[place]
