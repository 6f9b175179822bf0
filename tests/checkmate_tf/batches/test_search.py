"""The search for a batch on small graphs whose answer Dijkstra knows."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from checkmate_tf.batches.search import Question, search
from checkmate_tf.batches.sized_step import GraphOfBatch
from solvers import ComputationGraph
from solvers.graph.layer_graphs import unit_chain
from tests.brute_force import cheapest
from tests.graphs import SKIP, U_SHAPE


def growing(graph: ComputationGraph, size: int) -> ComputationGraph:
    """The graph with values of some bytes for each example, and 10 bytes that don't grow."""
    nodes = tuple(
        replace(node, memory=node.memory * size + number % 2)
        for number, node in enumerate(graph.nodes)
    )
    return replace(graph, nodes=nodes, fixed_bytes=10 + size)


def question(graph: ComputationGraph, budget: int, overhead: float, **changes) -> Question:
    asked = Question(
        graph=GraphOfBatch((2, 5), (growing(graph, 2), growing(graph, 5))),
        budget=budget,
        held=lambda size: 0,
        most_cost=graph.one_pass_cost * (1 + overhead),
        order="fixed",
        waste=lambda schedule: 1.0,
        time_limit=20,
    )
    return replace(asked, **changes)


def truth(graph: ComputationGraph, budget: int, most_cost: float, order: str) -> int:
    for size in itertools.count(1):
        cost = cheapest(growing(graph, size), budget, order)
        if cost is None or cost > most_cost:
            return size - 1
    raise AssertionError


@pytest.mark.parametrize("order", ["fixed", "free"])
@pytest.mark.parametrize("overhead", [0.0, 0.2, 0.5, 5.0])
@pytest.mark.parametrize("graph", [unit_chain(4), SKIP, U_SHAPE], ids=lambda each: each.name)
def test_the_largest_batch_of_small_graphs(graph, overhead, order):
    asked = question(graph, 70, overhead, order=order)
    answer = search(asked)
    most_cost = graph.one_pass_cost * (1 + overhead)
    assert answer.size == truth(graph, 70, most_cost, order)
    assert answer.beyond == answer.size + 1
    assert answer.impossible >= answer.beyond
    assert cheapest(growing(graph, answer.impossible), 70, order) is None


def test_the_unchanged_step_is_what_fits_at_no_extra_cost():
    asked = question(unit_chain(4), 70, 0.5)
    assert search(asked).unchanged == truth(unit_chain(4), 70, 9, "fixed")


def test_what_is_held_and_what_the_allocator_wastes_counts():
    free, most = 60, 12
    half = question(unit_chain(4), 10 + free, 0.5, waste=lambda schedule: 2.0)
    beside = question(unit_chain(4), 10 + free, 0.5, held=lambda size: 40)
    assert search(half).size < search(beside).size < truth(unit_chain(4), 70, most, "fixed")


def test_ctrl_c_which_a_solver_has_caught_is_passed_on():
    def pressed() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(question(unit_chain(4), 70, 0.5), pass_on=pressed)


def test_nothing_fits():
    answer = search(question(unit_chain(4), 12, 0.5))
    assert (answer.size, answer.unchanged, answer.beyond, answer.impossible) == (0, 0, 1, 1)
