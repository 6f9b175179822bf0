"""What is asked of a search for plans: a step, a device, and bytes that it may hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.device import Device
from checkmate_tf.devices.layout import MemoryLayout
from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.program.forecast import Forecast, forecast
from checkmate_tf.program.lower import lower
from solvers import Schedule


@dataclass(frozen=True)
class Question:
    """A plan is asked for. Shares have become bytes.

    Attributes:
        extracted: the step.
        resident: bytes that the device holds before it.
        budget: bytes that it may hold, all in all.
        margin: bytes of them that plans have to leave alone.
        baseline_peak: bytes that the unchanged step is expected to need.
        notes: what the user should know about costs and sizes.
        measured_baseline_peak: bytes that it needed when it ran; None where it has not.
        layout: of the device's memory, where it can be told.
        device: that the step runs on.
        budget_from: how the budget came about, where that is what the device can hold.
    """

    extracted: Extraction
    resident: int
    budget: int
    margin: int
    baseline_peak: int
    notes: tuple[str, ...]
    measured_baseline_peak: int | None = None
    layout: MemoryLayout | None = None
    device: Device = field(default_factory=current_device)
    budget_from: tuple[str, ...] = ()

    @property
    def repeats_itself(self) -> bool:
        """Whether steps are expected to hold what was forecast, and what a trial run held.

        So it is where the layout is known, unless an input pipeline makes batches meanwhile.
        """
        arriving = sum(self.layout.arriving) if self.layout is not None else None
        program = self.extracted.program
        return arriving is not None and arriving <= program.argument_bytes + program.constant_bytes

    def forecast(self, schedule: Schedule) -> Forecast:
        """The peaks of steps by a schedule."""
        layouts = self.layout.and_alike() if self.layout is not None else ()
        instructions = lower(self.extracted, schedule, self.device)
        return forecast(
            self.extracted.program,
            instructions,
            self.resident,
            self.device.wall(),
            layouts,
            self.device.at_once(),
        )

    @property
    def available(self) -> int:
        """The budget, or bytes that the device has where these are fewer."""
        wall = self.device.wall()
        return self.budget if wall is None else min(self.budget, wall)

    @property
    def bound(self) -> str:
        """What says how much is available, in words."""
        return "the budget" if self.available == self.budget else f"what {self.device.name} has"

    @property
    def limit(self) -> int:
        """Bytes that a plan may take."""
        return self.available - self.margin
