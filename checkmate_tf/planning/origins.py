"""What a plan was made for, by which it is found again, judged, and told from others."""

from __future__ import annotations

from dataclasses import replace

import tensorflow as tf

from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.phases import seconds_so_far
from checkmate_tf.planning.kept.step_content import step_content
from checkmate_tf.plans.plan import Origin, Plan
from checkmate_tf.trace.descriptions import batch_of, optimizer_of


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
    )
    return replace(plan, origin=origin, seconds=seconds_so_far())
