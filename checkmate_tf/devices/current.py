"""The device that TensorFlow computes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from checkmate_tf.devices.cpu import Cpu
from checkmate_tf.devices.device import Device
from profiles.devices import default_device

_INSTEAD: ContextVar[Device | None] = ContextVar("instead", default=None)


def current_device() -> Device:
    """The device that TensorFlow computes on; under `tf.device`, the one that was asked for.

    Example:
        >>> import tensorflow as tf
        >>> with tf.device("CPU"):
        ...     current_device().name
        'CPU:0'
    """
    instead = _INSTEAD.get()
    if instead is not None:
        return instead
    name = default_device()
    return Cpu(name) if name.startswith("CPU") else Device(name)


@contextmanager
def planned_as(device: Device) -> Iterator[None]:
    """Let plans be made meanwhile as for `device`; operations run where they ran before.

    Example:
        >>> with planned_as(Device("GPU:0")):
        ...     current_device().order
        <Order.AS_READY: 'when their inputs are there, in groups that wait for each other'>
    """
    token = _INSTEAD.set(device)
    try:
        yield
    finally:
        _INSTEAD.reset(token)
