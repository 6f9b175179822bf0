"""What there is before a step is planned: its graph, its budget, and what the device holds."""

from __future__ import annotations

from dataclasses import dataclass

from checkmate_tf.devices.layout import MemoryLayout
from checkmate_tf.graph.extraction import Extraction


@dataclass(frozen=True)
class Situation:
    """What there is before planning.

    Attributes:
        extracted: the step.
        resident: bytes that the device holds before it.
        budget: bytes that it may hold, all in all.
        margin: bytes of them that plans have to leave alone.
        baseline_peak: bytes that the unchanged step is expected to need.
        notes: what the user should know about costs and sizes.
        measured_baseline_peak: bytes that it needed when it ran; None where it has not.
        layout: of the device's memory, where it can be told.
    """

    extracted: Extraction
    resident: int
    budget: int
    margin: int
    baseline_peak: int
    notes: tuple[str, ...]
    measured_baseline_peak: int | None = None
    layout: MemoryLayout | None = None

    @property
    def repeats_itself(self) -> bool:
        """Whether steps are expected to hold what was forecast, and what a trial run held.

        So it is where the layout is known, unless an input pipeline makes batches meanwhile.
        """
        arriving = sum(self.layout.arriving) if self.layout is not None else None
        program = self.extracted.program
        return arriving is not None and arriving <= program.argument_bytes + program.constant_bytes

    @property
    def limit(self) -> int:
        """Bytes that a plan may take."""
        return self.budget - self.margin
