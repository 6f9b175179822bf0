"""Analytic costs: an operation takes as long as its arithmetic or its memory traffic.

The roofline model (Williams et al. 2009), with a floor: seconds = max(launch, slowness of its kind
× max(floating-point operations / rate, bytes moved / bandwidth)). A kernel starts while the one
before it runs, so that only short ones take as long as their launch. No operation is free.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from profiles.fusion import Fusion
from profiles.kinds import BROADCASTING, COLUMNS, kind_of, runs_no_kernel
from profiles.nested import Nested
from profiles.operation import Operation, TensorSize
from profiles.operation_facts import facts

_PRODUCTS = frozenset(
    ["convolution", "input gradient", "filter gradient", "matrix product", "einsum"]
)


@dataclass(frozen=True)
class Device:
    """The two ceilings of a device, what its kernels reach of them, and what starting one takes.

    Attributes:
        rate: floating-point operations a second in float32 matrix products.
        bandwidth: bytes a second through main memory.
        launch: the least that a kernel takes, in seconds.
        dispatch: seconds of an operation that runs no kernel.
        slowness: by kind (`profiles.kinds`), how many times as long as by the ceilings a kernel
            takes; 1 where nothing is said.
    """

    rate: float
    bandwidth: float
    launch: float
    dispatch: float
    slowness: Mapping[str, float] = field(default_factory=dict)


_CPU_SLOWNESS = {
    "DepthwiseConv2dNative": 3.5,
    "DepthwiseConv2dNativeBackpropFilter": 6.0,
    "DepthwiseConv2dNativeBackpropInput": 5.0,
}
_GPU_SLOWNESS = {
    BROADCASTING: 2.3,
    COLUMNS: 6.0,
    "Conv2DBackpropFilter": 3.5,
    "Conv2DBackpropInput": 2.3,
    "DepthwiseConv2dNative": 4.1,
    "DepthwiseConv2dNativeBackpropFilter": 9.9,
    "DepthwiseConv2dNativeBackpropInput": 8.0,
    "MaxPool": 2.3,
    "MaxPoolGrad": 2.2,
    "Pad": 1.9,
    "ReluGrad": 1.4,
    "Slice": 1.6,
    "Tile": 2.2,
}
"""Measured on an NVIDIA H200: `python -m experiments.cost_models --stored`."""


def device_ceilings(kind: str = "CPU") -> Device:
    """Round figures for a device kind, "CPU", "GPU" or "TPU".

    Only ratios between operations matter for a schedule; to predict seconds, measure a profile.
    A GPU's are those of an NVIDIA H200.
    """
    if kind == "CPU":
        cores = os.cpu_count() or 1
        bandwidth = 6e9 * min(cores, 8)
        return Device(40e9 * cores, bandwidth, launch=5e-6, dispatch=5e-6, slowness=_CPU_SLOWNESS)
    if kind == "TPU":
        return Device(rate=100e12, bandwidth=800e9, launch=2e-6, dispatch=2e-6)
    return Device(280e12, 4.1e12, launch=6.5e-6, dispatch=1.3e-6, slowness=_GPU_SLOWNESS)


@dataclass(frozen=True)
class Roofline:
    """Seconds of an operation from its floating-point operations and bytes moved.

    Attributes:
        device: its ceilings.
        unit: of the costs.

    Example:
        >>> from profiles.operation import Operation, TensorSize
        >>> image = TensorSize("float32", (8, 224, 224, 3))
        >>> Roofline().cost(Operation("Relu", (image,), (image,))) > 0
        True
    """

    device: Device = field(default_factory=device_ceilings)
    unit: ClassVar[str] = "s"

    def cost(self, operation: Operation) -> float:
        """Seconds of one run."""
        if runs_no_kernel(operation):
            return self.device.dispatch
        # Where a library fuses operations it saves little: they take as long as one by one.
        parts = operation.parts if isinstance(operation, Fusion) else (operation,)
        slowness = self.device.slowness
        work = sum(slowness.get(kind_of(each), 1.0) * self.by_ceilings(each) for each in parts)
        return max(self.device.launch, work)

    def by_ceilings(self, operation: Operation) -> float:
        """Seconds of a kernel that reaches a ceiling."""
        arithmetic = floating_point_operations(operation) / self.device.rate
        return max(arithmetic, operation.bytes_moved / self.device.bandwidth)


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
