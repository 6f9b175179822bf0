"""A roofline whose ceilings were measured on a device, and what stays below them by its kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from statistics import median

from profiles.operation import Operation
from profiles.operation_facts import facts
from profiles.roofline import Device, Roofline, does_products, floating_point_operations

_SMALL = 4096
"""Bytes moved by operations that take no longer than their start."""

_LARGE = 1024 * 1024
"""Bytes moved, and floating-point operations, from which the start plays no part."""


def calibrated(start: Device, seconds: Mapping[Operation, float]) -> Device:
    """The device whose ceilings explain `seconds`, and those of `start` where none tells.

    A rate of products is all their work over all the time spent on it, so that the sum over a step
    comes out right. Launch and bandwidth are medians: small operations are many and alike, and of
    large ones a few kinds take ten times as long as their bytes tell (`slowness`).

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
    depthwise = [op for op in products if facts(op.type).depthwise]
    dense = [op for op in products if not facts(op.type).depthwise]
    if moves:
        rates = [op.bytes_moved / _seconds([op], seconds, device.launch) for op in moves]
        device = replace(device, bandwidth=median(rates))
    if dense:
        device = replace(device, rate=_rate(dense, seconds, device.launch))
    if depthwise:
        device = replace(device, depthwise=_rate(depthwise, seconds, device.launch) / device.rate)
    return device


def slowness(device: Device, seconds: Mapping[Operation, float]) -> dict[str, float]:
    """By type, how many times as long as its ceilings tell operations took on a device, if longer.

    It is the sum over all large operations of a type: random numbers, sigmoids and gradients of
    poolings take several times as long as their bytes and their arithmetic tell. A type that was
    faster found its inputs in a cache, where others may not.

    Example:
        >>> from profiles.operation import TensorSize
        >>> from profiles.roofline import device_ceilings
        >>> size = TensorSize("float32", (1024, 1024))
        >>> KINDS = ("Tile", "Relu", "Mul")
        >>> tile, relu, mul = (Operation(kind, (size,), (size,)) for kind in KINDS)
        >>> seconds = {tile: 0.003, relu: 0.001, mul: 0.001}
        >>> found = slowness(calibrated(device_ceilings(), seconds), seconds)
        >>> {kind: round(times, 1) for kind, times in found.items()}
        {'Tile': 3.0}
    """
    ceilings = Roofline(device)
    took: dict[str, float] = defaultdict(float)
    expected: dict[str, float] = defaultdict(float)
    for operation, each in seconds.items():
        if operation.bytes_moved >= _LARGE:
            took[operation.type] += max(each - device.launch, 1e-9)
            expected[operation.type] += ceilings.cost(operation) - device.launch
    return {kind: took[kind] / expected[kind] for kind in took if took[kind] > expected[kind] > 0}


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
