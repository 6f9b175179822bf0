"""Bytes that operations need only while they run, measured once for every signature."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field

import tensorflow as tf

from profiles.devices import device_name
from profiles.measure.full_memory import cpu_limit
from profiles.measure.measurement import NotMeasurableError, measure_workspace
from profiles.operation import Operation, TensorSize
from profiles.operation_facts import facts
from profiles.store import known_profile

SMALLEST = 256 * 1024
"""Bytes moved under which an operation's workspace does not matter, but where the memory of a CPU
has a limit: the gradient of a convolution of so few may need 32 MiB."""

_MOST_ELEMENTS = 2**31 - 1
"""Of a tensor that is measured: kernels for GPUs end the process where their indices overflow."""


def stored_workspaces(device: str = "CPU:0") -> dict[Operation, int]:
    """What stored profiles know of a device's workspaces, in bytes.

    Raises:
        CheckmateError: TensorFlow does not see such a device, or a stored profile is broken.

    Example:
        >>> all(workspace >= 0 for workspace in stored_workspaces().values())
        True
    """
    return dict(known_profile(device_name(device), tf.__version__).workspaces)


@dataclass
class MeasuredWorkspaces:
    """A function from operations to workspaces that measures what it does not know yet.

    Attributes:
        device: "CPU:0", "GPU:0" or "TPU:0".
        known: workspaces in bytes.
        unknown: operations that could not be measured; theirs counts as 0.

    Example:
        >>> from profiles.operation import TensorSize
        >>> small = TensorSize("float32", (8,))
        >>> MeasuredWorkspaces()(Operation("Relu", (small,), (small,)))
        0
    """

    device: str = "CPU:0"
    known: dict[Operation, int] = field(default_factory=dict)
    unknown: list[Operation] = field(default_factory=list)

    def __call__(self, operation: Operation) -> int:
        """Bytes of workspace of one run."""
        if facts(operation.type).workspace == "none":
            return 0
        if operation.bytes_moved < SMALLEST and cpu_limit(self.device) is None:
            return 0
        if operation not in self.known:
            self.known[operation] = self._measure(operation)
        return self.known[operation]

    def _measure(self, operation: Operation) -> int:
        workspace = None
        tensors = *operation.inputs, *operation.outputs
        if max(map(_elements, tensors), default=0) <= _MOST_ELEMENTS:
            with suppress(NotMeasurableError):
                workspace = measure_workspace(operation, self.device)
        if workspace is None:
            self.unknown.append(operation)
        return workspace or 0


def _elements(size: TensorSize) -> int:
    return math.prod(size.shape)
