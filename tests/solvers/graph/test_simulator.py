from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers import ComputationGraph, Node, Schedule, ScheduleError, simulate
from solvers.graph import input_order_peak
from tests.graphs import DIAMOND, SKIP, random_graphs
from tests.messages import raises

CHAIN = ComputationGraph(
    (
        Node("a", 1, 4),
        Node("b", 2, 3, workspace=10, dependencies=(0,)),
        Node("c", 4, 2, dependencies=(1,)),
    ),
    fixed_bytes=100,
)

ORDERED = ComputationGraph(
    (
        Node("a", 1, 8),
        Node("b", 1, 1),
        Node("c", 1, 2, dependencies=(1,), after=(0,)),
    )
)


@pytest.mark.parametrize(
    ("graph", "steps", "cost", "timeline"),
    [
        (CHAIN, [0, 1, 2], 7, [104, 117, 105]),
        (CHAIN, [0, 1, 0, 1, 2], 10, [104, 117, 104, 117, 105]),  # the first 1 is not kept
        (DIAMOND, [0, 1, 2, 3], 7, [4, 5, 6, 3]),
        (DIAMOND, [0, 1, 0, 2, 3], 8, [4, 5, 5, 6, 3]),
        (DIAMOND, [0, 2, 1, 3], 7, [4, 5, 6, 3]),
        (SKIP, [0, 1, 2, 3, 4], 5, [3, 6, 9, 7, 5]),
        (SKIP, [0, 1, 2, 3, 0, 4], 6, [3, 6, 6, 4, 4, 5]),
        (ORDERED, [0, 1, 2], 3, [8, 1, 3]),  # what only comes before does not live on
        (ORDERED, [1, 0, 1, 2], 4, [1, 8, 1, 3]),
    ],
)
def test_cost_and_memory_by_hand(
    graph: ComputationGraph, steps: list[int], cost: float, timeline: list[int]
) -> None:
    simulation = simulate(graph, Schedule(steps))
    assert simulation.cost == cost
    assert simulation.timeline.tolist() == timeline
    assert simulation.peak == max(timeline)


STATEFUL = ComputationGraph(
    (
        Node("read", 1, 1, expired_by=(2,)),
        Node("draw", 1, 1, recomputable=False),
        Node("write", 1, 1, dependencies=(1,)),
        Node("end", 1, 1, dependencies=(0,)),
    )
)


@pytest.mark.parametrize(
    ("graph", "steps", "told"),
    [
        (CHAIN, [0, 1], ("node-never-computed", "'c'")),
        (CHAIN, [], ("node-never-computed", "'a'")),
        (CHAIN, [1, 0, 2], ("computed-too-early", "step 0", "'b' before 'a'")),
        (CHAIN, [0, 1, 3], ("node-unknown", "step 2", "node 3")),
        (CHAIN, [-1, 0, 1, 2], ("node-unknown", "step 0", "node -1")),
        (ORDERED, [1, 2, 0], ("computed-too-early", "step 1", "'c' before 'a'")),
        (STATEFUL, [0, 1, 1, 2, 3], ("stateful-node-repeated", "step 2", "'draw'")),
        (
            STATEFUL,
            [0, 1, 2, 0, 3],
            ("value-overwritten", "step 3", "'read' after 'write'"),
        ),
        (STATEFUL, [1, 2, 0, 3], ("value-overwritten", "step 2", "'read' after 'write'")),
    ],
)
def test_a_schedule_that_cannot_run_is_refused(
    graph: ComputationGraph, steps: list[int], told: tuple[str, ...]
) -> None:
    with raises(ScheduleError, *told):
        simulate(graph, Schedule(steps))


def test_a_value_may_be_read_and_recomputed_before_it_expires() -> None:
    assert simulate(STATEFUL, Schedule([0, 0, 1, 2, 3])).timeline.tolist() == [1, 1, 2, 3, 2]


def _naive_timeline(graph: ComputationGraph, steps: Sequence[int]) -> list[int]:
    """The memory rule word by word: each value at each step is looked at by itself."""

    def live(made: int, now: int) -> bool:
        """Is the value that step `made` computes live during step `now`?"""
        if made >= now:
            return made == now
        for position in range(made + 1, len(steps)):
            if position >= now and steps[made] in graph.nodes[steps[position]].dependencies:
                return True
            if steps[position] == steps[made]:
                return False
        return False

    return [
        graph.fixed_bytes
        + graph.nodes[steps[now]].workspace
        + sum(graph.nodes[steps[made]].memory for made in range(len(steps)) if live(made, now))
        for now in range(len(steps))
    ]


@given(random_graphs(), st.integers(0, 9), st.data())
def test_the_rule_taken_word_by_word_gives_the_same(
    graph: ComputationGraph, fixed_bytes: int, data: st.DataObject
) -> None:
    nodes = tuple(replace(node, recomputable=True, expired_by=()) for node in graph.nodes)
    graph = ComputationGraph(nodes, fixed_bytes)
    steps: list[int] = []
    for number in range(len(graph)):
        if number:
            steps += data.draw(st.lists(st.integers(0, number - 1), max_size=3))
        steps.append(number)
    steps += data.draw(st.lists(st.integers(0, len(graph) - 1), max_size=3))
    simulation = simulate(graph, Schedule(steps))
    assert simulation.timeline.tolist() == _naive_timeline(graph, steps)
    assert simulation.peak == max(simulation.timeline)
    assert simulation.cost == sum(graph.nodes[step].cost for step in steps)


def test_ten_thousand_nodes_computed_thrice() -> None:
    count = 10_000
    chain = ComputationGraph(
        tuple(
            Node(f"n{number}", 0.1, 3, dependencies=(number - 1,) if number else ())
            for number in range(count)
        )
    )
    simulation = simulate(chain, Schedule([*range(count)] * 3))
    assert simulation.cost == math.fsum([0.1] * 3 * count)
    assert simulation.peak == 6
    assert len(simulation.timeline) == 3 * count


def test_sizes_beyond_32_bits_add_up() -> None:
    nodes = [Node(f"n{number}", 1, 2**40) for number in range(5)]
    nodes.append(Node("sum", 1, 1, dependencies=(0, 1, 2, 3, 4)))
    graph = ComputationGraph(tuple(nodes), fixed_bytes=2**41)
    assert input_order_peak(graph) == 2**41 + 5 * 2**40 + 1
