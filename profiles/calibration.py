"""A device as measurements show it: its ceilings, and what stays below them by its kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from profiles.fusion import Fusion
from profiles.kinds import kind_of, runs_no_kernel
from profiles.operation import Operation
from profiles.operation_facts import facts
from profiles.profile import SHORTEST
from profiles.roofline import Device, Roofline, does_products, floating_point_operations

_Seconds = Mapping[Operation, float]

_SMALL = 0.1
"""Work that a launch hides, in launches."""

_LARGE = 2.0
"""Work beside which the launch plays no part, in launches."""


def calibrated(start: Device, seconds: Mapping[Operation, float]) -> Device:
    """The device that explains `seconds`, and `start` where none tells; it says what is large, too.

    All figures are medians: one time in ten is off by several times where others share the device.
    The bandwidth is that of plain elementwise operations, the rate that of the fastest kind of
    product; every other kind has its `slowness` against them.

    Example:
        >>> from profiles.operation import TensorSize
        >>> from profiles.roofline import device_ceilings
        >>> size = TensorSize("float32", (1024, 1024))
        >>> KINDS = ("Tile", "Relu", "Mul")
        >>> tile, relu, mul = (Operation(kind, (size,), (size,)) for kind in KINDS)
        >>> device = calibrated(device_ceilings(), {tile: 0.003, relu: 0.001, mul: 0.001})
        >>> round(device.bandwidth / 1e9, 1), round(device.slowness["Tile"], 1)
        (8.4, 3.0)
    """
    known = {op: each for op, each in seconds.items() if each > SHORTEST}
    idle = [each for op, each in known.items() if runs_no_kernel(op)]
    known = {op: each for op, each in known.items() if not runs_no_kernel(op)}
    work = {op: Roofline(start).by_ceilings(op) / start.launch for op in known}
    small = [known[op] for op in known if work[op] <= _SMALL]
    large = {op: known[op] for op in known if work[op] >= _LARGE}
    moves = {op: each for op, each in large.items() if not does_products(op)}
    launch = median(small) if small else start.launch
    device = replace(
        start,
        launch=launch,
        dispatch=median(idle) if idle else min(launch, start.dispatch),
        bandwidth=_bandwidth(moves) if moves else start.bandwidth,
    )
    device = _with_slowness(device, moves)
    products = _products_alone(device, large)
    dense = {op: each for op, each in products.items() if not facts(op.type).depthwise}
    if dense:
        device = replace(device, rate=_rate(dense))
    return _with_slowness(device, moves | products)


def _bandwidth(moves: _Seconds) -> float:
    """Bytes a second of the plain elementwise ones among `moves`; of all, where there are none."""
    plain = [op for op in moves if facts(op.type).buffer == "in place" and kind_of(op) == op.type]
    return median(op.bytes_moved / moves[op] for op in plain or moves)


def _products_alone(device: Device, large: _Seconds) -> dict[Operation, float]:
    """Seconds of products, those within fusions without what is done around them."""
    found = {}
    for operation, seconds in large.items():
        if isinstance(operation, Fusion):
            product = max(operation.parts, key=floating_point_operations)
            others = [each for each in operation.parts if each is not product]
            # Not less than a tenth: what is around it may have been fast for once.
            alone = max(seconds - sum(map(Roofline(device).cost, others)), seconds / 10)
            found[product] = alone
        elif does_products(operation):
            found[operation] = seconds
    return found


def _rate(products: _Seconds) -> float:
    """Floating-point operations a second of the fastest kind, where it does much for each byte."""
    by_kind: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for operation, seconds in products.items():
        done = floating_point_operations(operation)
        by_kind[kind_of(operation)].append((done / operation.bytes_moved, done / seconds))
    upper_halves = (sorted(each)[len(each) // 2 :] for each in by_kind.values())
    return max(median(rate for _, rate in half) for half in upper_halves)


def _with_slowness(device: Device, large: _Seconds) -> Device:
    """The device, with the slowness of every kind among `large`."""
    by_kind: dict[str, list[float]] = defaultdict(list)
    for operation, seconds in large.items():
        by_kind[kind_of(operation)].append(seconds / Roofline(device).by_ceilings(operation))
    # A kind that was faster found its inputs in a cache, where others may not.
    found = {kind: max(1.0, median(times)) for kind, times in by_kind.items()}
    return replace(device, slowness={**device.slowness, **found})
