"""A roofline whose ceilings were measured on a device."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from statistics import median

from profiles.operation import Operation
from profiles.roofline import Device, does_products, floating_point_operations

_SMALL = 4096
"""Bytes moved by operations that take no longer than their start."""

_LARGE = 1024 * 1024
"""Bytes moved, and floating-point operations, from which the start plays no part."""


def calibrated(start: Device, seconds: Mapping[Operation, float]) -> Device:
    """The device whose ceilings explain `seconds`, and those of `start` where none tells.

    A rate is all the work of its kind over all the time spent on it, so that the sum over a step
    comes out right; the launch is a median, since small operations are many and alike.

    Example:
        >>> from profiles.operation import TensorSize
        >>> from profiles.roofline import device_ceilings
        >>> size = TensorSize("float32", (1024, 1024))
        >>> relu = Operation("Relu", (size,), (size,))
        >>> round(calibrated(device_ceilings(), {relu: 0.001}).bandwidth / 1e9, 1)
        8.4
    """
    small = [each for op, each in seconds.items() if op.bytes_moved <= _SMALL]
    device = replace(start, launch=median(small)) if small else start
    large = [op for op in seconds if op.bytes_moved >= _LARGE]
    moves = [op for op in large if not does_products(op)]
    products = [op for op in large if does_products(op)]
    depthwise = [op for op in products if "Depthwise" in op.type]
    dense = [op for op in products if "Depthwise" not in op.type]
    if moves:
        moved = sum(op.bytes_moved for op in moves)
        device = replace(device, bandwidth=moved / _seconds(moves, seconds, device.launch))
    if dense:
        device = replace(device, rate=_rate(dense, seconds, device.launch))
    if depthwise:
        device = replace(device, depthwise=_rate(depthwise, seconds, device.launch) / device.rate)
    return device


def _rate(
    operations: Collection[Operation], seconds: Mapping[Operation, float], launch: float
) -> float:
    """Floating-point operations a second."""
    work = sum(map(floating_point_operations, operations))
    return work / _seconds(operations, seconds, launch)


def _seconds(
    operations: Collection[Operation], seconds: Mapping[Operation, float], launch: float
) -> float:
    """Time of the operations without their starts, and not nothing."""
    return sum(max(seconds[op] - launch, 1e-9) for op in operations)
