"""The one order in which a CPU runs the operations of a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.trace.fusions import may_fuse
from checkmate_tf.trace.repeatability import updates_in_place
from solvers import Schedule


def one_order(extraction: Extraction, schedule: Schedule) -> list[list[int]]:
    """Numbers of operations in order; those of one part may be fused, and wait for the same.

    Several operations that one kernel replaces (`trace.repeatability`) are one, by the number of
    the last of them.
    """
    operations = extraction.program.operations
    left_out = updates_in_place(extraction.program).left_out
    parts = [[number] for number in extraction.prologue]
    for node, attached in extraction.computations(schedule):
        parts += parts_of_node(operations, extraction.nodes[node])
        parts += [[number] for number in attached]
    kept = [[number for number in part if number not in left_out] for part in parts]
    return [part for part in kept if part]


def parts_of_node(operations: Sequence[Any], members: Sequence[int]) -> list[list[int]]:
    """Split the operations of a node where one must wait for the other; fused pairs stay whole."""
    cut_before = set(range(1, len(members)))
    for first, one in enumerate(members):
        for second in range(first + 1, len(members)):
            if may_fuse(operations[one].type, operations[members[second]].type):
                cut_before -= set(range(first + 1, second + 1))
    bounds = [0, *sorted(cut_before), len(members)]
    return [list(members[start:end]) for start, end in pairwise(bounds)]
