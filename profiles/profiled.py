"""Costs from a profile, and from a roofline calibrated by it where an entry is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from profiles.calibration import calibrated
from profiles.operation import Operation
from profiles.profile import SHORTEST, Profile
from profiles.roofline import Device, Roofline


@dataclass(frozen=True)
class ProfiledCosts:
    """Seconds of an operation as they were measured, where they were and are not nothing.

    Attributes:
        profile: of the device.
        ceilings: for a roofline of such a device, before calibration.
        unit: of the costs.

    Example:
        >>> from profiles.profile import Measurement
        >>> from profiles.roofline import device_ceilings
        >>> profile = Profile("a CPU", "2.21.0", {Operation("Relu"): Measurement(3e-6, 0)})
        >>> costs = ProfiledCosts(profile, device_ceilings())
        >>> costs.cost(Operation("Relu"))
        3e-06
        >>> costs.missing([Operation("Relu"), Operation("Selu"), Operation("Selu")])
        2
    """

    profile: Profile
    ceilings: Device
    unit: ClassVar[str] = "s"

    @cached_property
    def fallback(self) -> Roofline:
        """For operations that are not in the profile."""
        return Roofline(calibrated(self.ceilings, self.profile.seconds))

    def cost(self, operation: Operation) -> float:
        """Seconds of one run."""
        measured = self.profile.seconds.get(operation, SHORTEST)
        # Nothing takes no time: other processes took some while a single run was measured.
        return self.fallback.cost(operation) if measured <= SHORTEST else measured

    def missing(self, operations: Iterable[Operation]) -> int:
        """How many of `operations` the profile has no time of."""
        return sum(operation not in self.profile.seconds for operation in operations)
