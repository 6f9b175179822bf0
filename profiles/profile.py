"""A profile: what operations were seen to need on one device, under one TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from profiles.operation import Operation
from solvers.errors import CheckmateError

SHORTEST = 1e-7
"""Seconds that an operation is said to take where less was measured: none may seem free."""


@dataclass(frozen=True)
class Measurement:
    """What one operation needs on one device.

    Attributes:
        seconds: of one run as part of a graph, the executor's dispatch included, the call of a
            function not; None where it was not run.
        workspace: most bytes held beyond inputs and outputs; None where the device's allocator
            keeps no count.
    """

    seconds: float | None
    workspace: int | None


@dataclass(frozen=True)
class Profile:
    """Measurements of operations on one device.

    Attributes:
        device: its full name, as `profiles.devices.device_name` makes it.
        tensorflow: the version that ran the operations.
        entries: what was measured.

    Example:
        >>> relu = Operation("Relu")
        >>> profile = Profile("a CPU", "2.21.0", {relu: Measurement(2e-6, 0)})
        >>> profile.merged(Profile("a CPU", "2.21.0", {relu: Measurement(3e-6, 0)})).entries[relu]
        Measurement(seconds=3e-06, workspace=0)
    """

    device: str
    tensorflow: str
    entries: Mapping[Operation, Measurement] = field(default_factory=dict)

    @cached_property
    def seconds(self) -> Mapping[Operation, float]:
        """Of the operations that were run."""
        known = {operation: each.seconds for operation, each in self.entries.items()}
        return {operation: each for operation, each in known.items() if each is not None}

    @cached_property
    def workspaces(self) -> Mapping[Operation, int]:
        """Bytes, of the operations for which they are known."""
        known = {operation: each.workspace for operation, each in self.entries.items()}
        return {operation: each for operation, each in known.items() if each is not None}

    def merged(self, other: Profile) -> Profile:
        """Both profiles in one; where both know an operation, `other` is right.

        Raises:
            CheckmateError: they are of different devices or TensorFlow versions.
        """
        other.check_device(self.device)
        if other.tensorflow != self.tensorflow:
            raise CheckmateError(
                "profiles-of-two-releases",
                f"profiles of TensorFlow {self.tensorflow} and {other.tensorflow} can't be merged: "
                "their kernels differ; keep them in files of their own",
            )
        return replace(self, entries={**self.entries, **other.entries})

    def check_device(self, device: str) -> None:
        """See whether this is a profile of `device`.

        Raises:
            CheckmateError: it is another device's.
        """
        if self.device != device:
            raise CheckmateError(
                "profile-of-another-device",
                f"the profile is of another device: it was measured on {self.device!r}, and this "
                f"is {device!r}; measure one here, or ask for it with other_device=True "
                "(--other-device)",
            )
