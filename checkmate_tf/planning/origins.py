"""What a plan was made for, by which it is found again, judged, and told from others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import tensorflow as tf

from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.phases import seconds_so_far
from checkmate_tf.planning.kept.step_content import step_content
from checkmate_tf.plans.plan import Origin, Plan
from checkmate_tf.trace.descriptions import batch_of, optimizer_of
from checkmate_tf.trace.operations import users_line


def with_origin(plan: Plan, extracted: Extraction, resident: int, device: str) -> Plan:
    """The plan, with what it was made for and the seconds that it took so far.

    Args:
        plan: it.
        extracted: the step.
        resident: bytes that the device held before it.
        device: its full name.
    """
    program = extracted.program
    origin = Origin(
        step_content(program),
        extracted.workspaces,
        resident,
        device,
        tf.__version__,
        batch_of(program),
        optimizer_of(program),
        tuple(_lines(extracted)),
    )
    return replace(plan, origin=origin, seconds=seconds_so_far())


def _lines(extracted: Extraction) -> Iterator[str]:
    """Of the user's program, one for each node: that of the operation it is named after."""
    operations = {each.name: each for each in extracted.program.operations}
    for node in extracted.graph.nodes:
        operation = operations.get(node.name)
        yield users_line(operation) if operation is not None else ""
