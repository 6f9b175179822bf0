"""A device that is not here: it holds nothing but the step, and nothing runs on it."""

from __future__ import annotations

from dataclasses import dataclass

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.device import Device


@dataclass(frozen=True)
class Elsewhere(Device):
    """See `Device`."""

    tries_kernels: bool = False
    is_here: bool = False

    @property
    def full_name(self) -> str:
        """See `Device`; which one it is nobody says."""
        return "another device"

    def room(self) -> None:
        """See `Device`."""

    def held(self) -> int:
        """See `Device`."""
        return 0


def another_device() -> Elsewhere:
    """One that nobody knows more of, taken to order operations as the one here does."""
    return Elsewhere("", order=current_device().order)
