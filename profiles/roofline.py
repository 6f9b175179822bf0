"""Analytic costs: an operation takes as long as its arithmetic or its memory traffic.

The roofline model (Williams et al. 2009): seconds = launch + max(floating-point operations /
rate, bytes moved / bandwidth). No operation is free, and no two differ only by name.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from profiles.fusion import Fusion
from profiles.nested import Nested
from profiles.operation import Operation, TensorSize
from profiles.operation_facts import facts

_PRODUCTS = frozenset(
    ["convolution", "input gradient", "filter gradient", "matrix product", "einsum"]
)


@dataclass(frozen=True)
class Device:
    """The two ceilings of a device, and what starting an operation takes.

    Attributes:
        rate: floating-point operations a second in float32 matrix products.
        bandwidth: bytes a second through main memory.
        launch: seconds to start an operation.
        depthwise: the share of `rate` that depthwise convolutions reach.
    """

    rate: float
    bandwidth: float
    launch: float
    depthwise: float


def device_ceilings(kind: str = "CPU") -> Device:
    """Round figures for a device kind, "CPU", "GPU" or "TPU".

    Only ratios between operations matter for a schedule; to predict seconds, measure a profile.
    """
    if kind == "CPU":
        cores = os.cpu_count() or 1
        return Device(rate=40e9 * cores, bandwidth=6e9 * min(cores, 8), launch=5e-6, depthwise=0.1)
    if kind == "TPU":
        return Device(rate=100e12, bandwidth=800e9, launch=2e-6, depthwise=0.05)
    return Device(rate=30e12, bandwidth=1500e9, launch=5e-6, depthwise=0.05)


@dataclass(frozen=True)
class Roofline:
    """Seconds of an operation from its floating-point operations and bytes moved.

    Attributes:
        device: its ceilings.
        slowness: by type, how many times as long as by the ceilings an operation takes.
        unit: of the costs.

    Example:
        >>> from profiles.operation import Operation, TensorSize
        >>> image = TensorSize("float32", (8, 224, 224, 3))
        >>> Roofline().cost(Operation("Relu", (image,), (image,))) > 0
        True
    """

    device: Device = field(default_factory=device_ceilings)
    slowness: Mapping[str, float] = field(default_factory=dict)
    unit: ClassVar[str] = "s"

    def cost(self, operation: Operation) -> float:
        """Seconds of one run."""
        rate = self.device.rate
        row = facts(operation.type)
        if row.depthwise:
            rate *= self.device.depthwise
        if row.arithmetic == "shapes":
            return self.device.launch
        arithmetic = floating_point_operations(operation) / rate
        traffic = operation.bytes_moved / self.device.bandwidth
        return self.device.launch + self.slowness.get(operation.type, 1.0) * max(
            arithmetic, traffic
        )


@dataclass(frozen=True)
class FloatingPointOperations:
    """Floating-point operations as the cost, and at least one: the paper's simplest model.

    In proportion to seconds where arithmetic decides.

    Attributes:
        unit: of the costs.

    Example:
        >>> from profiles.operation import Operation, TensorSize
        >>> image = TensorSize("float32", (8, 224, 224, 3))
        >>> FloatingPointOperations().cost(Operation("Relu", (image,), (image,)))
        1204224.0
    """

    unit: ClassVar[str] = "FLOP"

    def cost(self, operation: Operation) -> float:
        """The number of operations of one run."""
        return max(1.0, floating_point_operations(operation))


def floating_point_operations(operation: Operation) -> float:
    """Floating-point operations of one run.

    Convolutions and their two gradients do the same multiplications: two operations for every
    output element of the forward convolution and every weight that it meets.
    """
    if isinstance(operation, Fusion):
        return sum(map(floating_point_operations, operation.parts))
    if isinstance(operation, Nested):
        return operation.repeats * sum(map(floating_point_operations, operation.parts))
    rule, inputs, outputs = facts(operation.type).arithmetic, operation.inputs, operation.outputs
    if rule in _PRODUCTS and not all(each.shape for each in inputs[:2]):
        # Of unknown rank, as what a Python function returned: then outputs are all that is known.
        return float(sum(each.elements for each in outputs))
    if rule == "convolution":
        return _convolution(operation, inputs[1], outputs[0])
    if rule == "input gradient":
        return _convolution(operation, inputs[1], inputs[2])
    if rule == "filter gradient":
        return _convolution(operation, outputs[0], inputs[2])
    if rule == "matrix product":
        return _matrix_product(operation)
    if rule == "einsum":
        return _einsum(operation)
    if rule in ("pooling", "pooling gradient"):
        # A gradient's last input has the shape of what the forward pooling put out.
        pooled = outputs[0] if rule == "pooling" else inputs[-1]
        return float(pooled.elements * math.prod(operation.attribute("ksize") or (1,)))
    elements = max((each.elements for each in (*inputs, *outputs)), default=0)
    if rule == "terms":
        return float(elements * max(1, len(inputs) - 1))
    return float(elements * (rule if isinstance(rule, int) else 1))


def does_products(operation: Operation) -> bool:
    """Whether its time goes into matrix products: arithmetic decides, not memory traffic."""
    parts = operation.parts if isinstance(operation, Fusion | Nested) else (operation,)
    return any(facts(part.type).arithmetic in _PRODUCTS for part in parts)


def _convolution(operation: Operation, weight: TensorSize, forward: TensorSize) -> float:
    # Filters are (…window, in, out); a depthwise one is (…window, in, multiplier) and every
    # output channel meets one window of one input channel.
    met = weight.shape[:-2] if facts(operation.type).depthwise else weight.shape[:-1]
    return 2.0 * math.prod(met) * forward.elements


def _matrix_product(operation: Operation) -> float:
    left = operation.inputs[0].shape
    transposed = operation.attribute("transpose_a") or operation.attribute("adj_x")
    inner = left[-2] if transposed else left[-1]
    return 2.0 * max(inner, 1) * operation.outputs[0].elements


def _einsum(operation: Operation) -> float:
    """Two operations for every combination of values that the labels can take."""
    operands = str(operation.attribute("equation", "")).split("->")[0].split(",")
    sizes: dict[str | int, int] = {}  # by label, or by place from the right under an ellipsis
    for labels, tensor in zip(operands, operation.inputs, strict=True):
        before, dots, behind = labels.replace(" ", "").partition("...")
        hidden = len(tensor.shape) - len(before) - len(behind) if dots else 0
        places = [*before, *range(hidden, 0, -1), *behind]
        for label, size in zip(places, tensor.shape, strict=False):
            sizes[label] = max(sizes.get(label, 1), size)
    return 2.0 * math.prod(sizes.values())
