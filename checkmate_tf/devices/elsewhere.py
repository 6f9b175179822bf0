"""A device that is not here: it holds nothing but the step, and nothing runs on it."""

from __future__ import annotations

from dataclasses import dataclass

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.device import Device, Order

_ORDERS = {"CPU": Order.AS_FREED, "GPU": Order.AS_READY}

_NOT_FOR_TENSORFLOW = 2250 << 20
"""Bytes of a GPU that TensorFlow leaves to the system and to CUDA: 1.8 GB on those of today
(`MinSystemMemory` in gpu_device.cc), and what CUDA's context takes."""


@dataclass(frozen=True)
class Elsewhere(Device):
    """See `Device`."""

    tries_kernels: bool = False
    is_here: bool = False

    @property
    def full_name(self) -> str:
        """See `Device`; which one it is nobody says."""
        return "another device"

    def wall(self) -> None:
        """See `Device`."""

    def room(self) -> None:
        """See `Device`."""

    def held(self) -> int:
        """See `Device`."""
        return 0


def another_device() -> Elsewhere:
    """One that nobody knows more of, taken to order operations as the one here does."""
    return Elsewhere("", order=current_device().order)


def device_of_kind(kind: str) -> Elsewhere:
    """One of which the kind is known, "CPU" or "GPU"."""
    return Elsewhere("", order=_ORDERS[kind], is_host=kind == "CPU")


def usable_bytes(kind: str, memory: int) -> int:
    """Bytes that TensorFlow can use of a device's `memory`.

    Example:
        >>> usable_bytes("CPU", 8 << 30) >> 30, usable_bytes("GPU", 16 << 30) >> 20
        (8, 14134)
    """
    return memory if kind == "CPU" else max(0, memory - _NOT_FOR_TENSORFLOW)
