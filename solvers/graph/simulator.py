"""What a schedule costs and how much memory it holds, step by step.

The one memory rule of this project: an output lives from the step that computes it to the last
step that reads it, and in any case ends where its node is recomputed.

    memory of a step = live outputs, the new one included
                     + workspace of the running node
                     + fixed_bytes

Every solver's answer is checked here, and no solver has a part in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.errors import ScheduleError
from solvers.graph.computation_graph import ComputationGraph
from solvers.graph.schedule import Schedule


@dataclass(frozen=True)
class Simulation:
    """The outcome of executing a schedule.

    Attributes:
        cost: sum of the costs of all computations, in the graph's unit.
        peak: most bytes at any step, `fixed_bytes` included.
        timeline: bytes during each step, shape (steps,), `fixed_bytes` included.
    """

    cost: float
    peak: int
    timeline: NDArray[np.int64]


def simulate(graph: ComputationGraph, schedule: Schedule) -> Simulation:
    """Execute `schedule` on paper, in time linear in steps and reads.

    Raises:
        ScheduleError: a node is never computed, a value is read before it exists, a node is
            recomputed that may run only once, or an order that the graph asks for is broken.

    Example:
        >>> from solvers import ComputationGraph, Node, Schedule, simulate
        >>> chain = ComputationGraph((Node("a", 1, 4), Node("b", 2, 3, dependencies=(0,))))
        >>> simulate(chain, Schedule([0, 1])).peak
        7
    """
    steps = schedule.steps
    last_read = list(range(len(steps)))
    newest: list[int] = [-1] * len(graph)
    for position, number in enumerate(steps):
        if not 0 <= number < len(graph):
            raise ScheduleError(
                "node-unknown", f"step {position} computes node {number}, which is not there"
            )
        node = graph.nodes[number]
        is_first = newest[number] < 0
        for read in node.dependencies:
            if newest[read] < 0:
                raise ScheduleError(
                    "computed-too-early",
                    f"step {position} computes {node.name!r} before {graph.nodes[read].name!r}, "
                    "whose output it reads",
                )
            last_read[newest[read]] = position
        if is_first:
            for other in node.after:
                if newest[other] < 0:
                    raise ScheduleError(
                        "computed-too-early",
                        f"step {position} computes {node.name!r} before "
                        f"{graph.nodes[other].name!r}, which it must follow",
                    )
        elif not node.recomputable:
            raise ScheduleError(
                "stateful-node-repeated",
                f"step {position} computes {node.name!r} again; it is stateful and may run once",
            )
        for other in node.expired_by:
            if newest[other] >= 0:
                raise ScheduleError(
                    "value-overwritten",
                    f"step {position} computes {node.name!r} after {graph.nodes[other].name!r} "
                    "has overwritten a variable that it reads",
                )
        newest[number] = position
    if -1 in newest:
        missing = newest.index(-1)
        raise ScheduleError(
            "node-never-computed", f"node {graph.nodes[missing].name!r} is never computed"
        )
    return _measure(graph, np.array(steps, dtype=np.int64), np.array(last_read, dtype=np.int64))


def input_order_peak(graph: ComputationGraph) -> int:
    """Peak in bytes, `fixed_bytes` included, of computing every node once in input order."""
    return simulate(graph, Schedule(range(len(graph)))).peak


def _measure(
    graph: ComputationGraph, steps: NDArray[np.int64], last_read: NDArray[np.int64]
) -> Simulation:
    """Sum up lifetimes: the value made at step p lives through step last_read[p]."""
    if not len(steps):
        return Simulation(0.0, graph.fixed_bytes, np.zeros(0, dtype=np.int64))
    memories = graph.memories[steps]
    change = np.zeros(len(steps) + 1, dtype=np.int64)
    change[:-1] = memories
    np.subtract.at(change, last_read + 1, memories)
    timeline = np.cumsum(change[:-1]) + graph.workspaces[steps] + graph.fixed_bytes
    return Simulation(graph.sum_of_costs(graph.costs[steps]), int(timeline.max()), timeline)
