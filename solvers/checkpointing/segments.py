"""Solvers for chains that keep the checkpoints of a least-peak segmentation (Hong et al.).

They know no costs and no budget: each gives the one plan whose peak its objective says is
least, and fails where that plan is over budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from solvers.checkpointing.articulation import layers_of_chain
from solvers.checkpointing.checkpoints import first_gradients, forward_nodes
from solvers.checkpointing.segmentation import (
    Segmentation,
    segment_revised,
    segment_sum,
    segment_traced,
)
from solvers.graph import ComputationGraph, Schedule, simulate
from solvers.graph.budget import format_bytes
from solvers.problem import Problem, Solution, answer

Objective = Callable[[Sequence[int]], Segmentation]


def segment_schedule(graph: ComputationGraph, checkpoints: Iterable[int]) -> Schedule:
    """Keep `checkpoints` of a chain; recompute a segment just before it is needed, in O(n).

    The segment at the end of the forward pass is needed at once and is not recomputed.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> segment_schedule(unit_chain(4), [0, 2, 3]).steps
        (0, 1, 2, 3, 4, 5, 6, 1, 7, 8)
    """
    kept = set(checkpoints)
    gradients = first_gradients(graph)
    before: dict[int, list[int]] = {}
    segment: list[int] = []
    for layer in forward_nodes(graph):
        if layer not in kept:
            segment.append(layer)
            continue
        needed = min((gradients[i] for i in segment if i in gradients), default=None)
        if needed is not None:
            before[needed] = [i for i in segment if _may_run_again(graph, i, needed)]
        last_segment, segment = needed, []
    before.pop(-1 if last_segment is None else last_segment, None)
    steps: list[int] = []
    for node in range(len(graph)):
        steps += before.get(node, ())
        steps.append(node)
    return Schedule(steps).without_useless(graph)


def segment_schedules(graph: ComputationGraph) -> Iterator[Schedule]:
    """The schedules of the three objectives on a chain."""
    for objective in (segment_revised, segment_traced, segment_sum):
        yield segment_schedule(graph, _least(graph, objective)[1])


def _least(graph: ComputationGraph, segmentation: Objective) -> tuple[int, list[int]]:
    """The least value of an objective in bytes, and the nodes kept for it."""
    layers = forward_nodes(graph)
    found = segmentation([graph.nodes[layer].memory for layer in layers])
    return found.objective, [layers[each] for each in found.checkpoints]


def _may_run_again(graph: ComputationGraph, number: int, before: int) -> bool:
    node = graph.nodes[number]
    return node.recomputable and all(other >= before for other in node.expired_by)


def _solve(name: str, segmentation: Objective, problem: Problem) -> Solution:
    """The plan with the least value of an objective."""
    graph = problem.graph
    layers_of_chain(graph, "a segmentation")
    objective, checkpoints = _least(graph, segmentation)
    schedule = segment_schedule(graph, checkpoints)
    peak = simulate(graph, schedule).peak
    return answer(
        problem,
        name,
        schedule,
        note=(
            f"its objective is {format_bytes(objective)}; the simulated peak, gradients "
            f"and fixed bytes included, {format_bytes(peak)}"
        ),
        statistics={"objective": objective, "simulated_peak": peak, "checkpoints": checkpoints},
    )


solve_segment_sum = partial(_solve, "segment_sum", segment_sum)
solve_segment_traced = partial(_solve, "segment_traced", segment_traced)
solve_segment_revised = partial(_solve, "segment_revised", segment_revised)
