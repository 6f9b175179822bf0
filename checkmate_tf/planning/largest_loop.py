"""The loop that keeps a plan from being leaner, if one does, in words."""

from __future__ import annotations

from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.planning.loops_of_steps import computes_gradients
from checkmate_tf.trace.bodies import LOOPS
from checkmate_tf.trace.operations import describe
from solvers import format_bytes

_MUCH = 0.5
"""Share of what a schedule adds to fixed memory: a loop that needs less is not the reason."""


def about_the_largest_loop(extraction: Extraction, added: int) -> str:
    """A sentence on the loop that needs most of `added` bytes; "" if there is none.

    A loop is one node: what it keeps for its gradient is kept, or recomputed, as a whole.
    """
    operations = extraction.program.operations
    loops = [
        (node.memory + node.workspace, operations[number])
        for node, members in zip(extraction.graph.nodes, extraction.nodes, strict=False)
        for number in members
        if operations[number].type in LOOPS
    ]
    if not loops:
        return ""
    needed, loop = max(loops, key=lambda each: each[0])
    if needed < _MUCH * added:
        return ""
    if computes_gradients(loop):
        return (
            f". The loop {describe(loop)} alone needs {format_bytes(needed)}, and runs as a whole: "
            "decorate the function that computes gradients in it instead of the one around it"
        )
    return (
        f". The loop {describe(loop)} alone needs {format_bytes(needed)}, most of it for its "
        "gradient, and is kept or recomputed as a whole. Written as several loops, one after the "
        "other, each on a part of the sequence, it can be planned part by part (docs/memory.md)"
    )
