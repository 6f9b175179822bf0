"""When the values of a schedule are held: from their computation to their last read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from solvers.graph.computation_graph import ComputationGraph
from solvers.graph.schedule import Schedule

Group = TypeVar("Group", bound=Hashable)


def readers(graph: ComputationGraph, schedule: Schedule) -> list[list[int]]:
    """For every step, the later steps that read what it computes.

    Example:
        >>> from solvers import ComputationGraph, Node, Schedule
        >>> chain = ComputationGraph((Node("a", 1, 4), Node("b", 2, 3, dependencies=(0,))))
        >>> readers(chain, Schedule([0, 1]))
        [[1], []]
    """
    found: list[list[int]] = [[] for _ in schedule.steps]
    newest: dict[int, int] = {}
    for place, number in enumerate(schedule.steps):
        for read in graph.nodes[number].dependencies:
            found[newest[read]].append(place)
        newest[number] = place
    return found


def last_reads(graph: ComputationGraph, schedule: Schedule) -> list[int]:
    """For every step, the last step that reads what it computes; itself where none does.

    Args:
        graph: of the schedule.
        schedule: one that the simulator lets pass.

    Example:
        >>> from solvers import ComputationGraph, Node, Schedule
        >>> chain = ComputationGraph((Node("a", 1, 4), Node("b", 2, 3, dependencies=(0,))))
        >>> last_reads(chain, Schedule([0, 1]))
        [1, 1]
    """
    read_by = readers(graph, schedule)
    return [max(places, default=place) for place, places in enumerate(read_by)]


def held_at(graph: ComputationGraph, schedule: Schedule, place: int) -> dict[int, int]:
    """The nodes whose values are held during a step, with their bytes.

    Example:
        >>> from solvers import ComputationGraph, Node, Schedule
        >>> chain = ComputationGraph((Node("a", 1, 4), Node("b", 2, 3, dependencies=(0,))))
        >>> held_at(chain, Schedule([0, 1]), 1)
        {0: 4, 1: 3}
    """
    ends = last_reads(graph, schedule)
    return {
        number: graph.nodes[number].memory
        for begin, number in enumerate(schedule.steps[: place + 1])
        if ends[begin] >= place
    }


def held_by_group(
    graph: ComputationGraph, schedule: Schedule, groups: Sequence[Group]
) -> dict[Group, NDArray[np.int64]]:
    """Bytes of values that each group of nodes holds during each step.

    Args:
        graph: of the schedule.
        schedule: one that the simulator lets pass.
        groups: the group of every node.

    Example:
        >>> from solvers import ComputationGraph, Node, Schedule
        >>> chain = ComputationGraph((Node("a", 1, 4), Node("b", 2, 3, dependencies=(0,))))
        >>> held_by_group(chain, Schedule([0, 1]), "xy")["x"].tolist()
        [4, 4]
    """
    ends, steps = last_reads(graph, schedule), len(schedule)
    changes: dict[Group, NDArray[np.int64]] = defaultdict(lambda: np.zeros(steps + 1, np.int64))
    for begin, number in enumerate(schedule.steps):
        change = changes[groups[number]]
        change[begin] += graph.nodes[number].memory
        change[ends[begin] + 1] -= graph.nodes[number].memory
    return {group: np.cumsum(change[:-1]) for group, change in changes.items()}
