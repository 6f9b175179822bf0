from __future__ import annotations

from typing import Any

import pytest

from profiles.kinds import BROADCASTING
from profiles.operation import Operation, TensorSize
from profiles.roofline import (
    Device,
    FloatingPointOperations,
    Roofline,
    device_ceilings,
    floating_point_operations,
)

Shape = tuple[int, ...]
IMAGE, FILTER, FEATURES = (8, 10, 12, 3), (5, 7, 3, 16), (8, 5, 6, 16)
DEPTHWISE, DEEP = (5, 7, 3, 2), (8, 5, 6, 6)


def _operation(
    kind: str, inputs: list[Shape], outputs: list[Shape], **attributes: Any
) -> Operation:
    return Operation(
        kind,
        tuple(TensorSize("float32", shape) for shape in inputs),
        tuple(TensorSize("float32", shape) for shape in outputs),
        tuple(sorted(attributes.items())),
    )


CONVOLUTION = 2 * (8 * 5 * 6 * 16) * (5 * 7 * 3)
"""A multiplication and an addition for every output element and every weight that it meets."""
DEPTHWISE_CONVOLUTION = 2 * (8 * 5 * 6 * 6) * (5 * 7)


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs", "attributes", "expected"),
    [
        ("Conv2D", [IMAGE, FILTER], [FEATURES], {}, CONVOLUTION),
        ("Conv2DBackpropInput", [(4,), FILTER, FEATURES], [IMAGE], {}, CONVOLUTION),
        ("Conv2DBackpropFilter", [IMAGE, (4,), FEATURES], [FILTER], {}, CONVOLUTION),
        ("DepthwiseConv2dNative", [IMAGE, DEPTHWISE], [DEEP], {}, DEPTHWISE_CONVOLUTION),
        (
            "DepthwiseConv2dNativeBackpropInput",
            [(4,), DEPTHWISE, DEEP],
            [IMAGE],
            {},
            DEPTHWISE_CONVOLUTION,
        ),
        (
            "DepthwiseConv2dNativeBackpropFilter",
            [IMAGE, (4,), DEEP],
            [DEPTHWISE],
            {},
            DEPTHWISE_CONVOLUTION,
        ),
        # two groups: every output channel meets half of the 4 input channels
        ("Conv2D", [(1, 8, 8, 4), (3, 3, 2, 6)], [(1, 8, 8, 6)], {}, 2 * 384 * 18),
        ("Conv3D", [(1, 4, 4, 4, 2), (3, 3, 3, 2, 5)], [(1, 2, 2, 2, 5)], {}, 2 * 40 * 54),
        ("MatMul", [(3, 5), (5, 7)], [(3, 7)], {}, 2 * 3 * 5 * 7),
        ("MatMul", [(5, 3), (5, 7)], [(3, 7)], {"transpose_a": True}, 2 * 3 * 5 * 7),
        ("MatMul", [(3, 5), (7, 5)], [(3, 7)], {"transpose_b": True}, 2 * 3 * 5 * 7),
        ("BatchMatMulV2", [(4, 3, 5), (4, 5, 7)], [(4, 3, 7)], {}, 4 * 2 * 3 * 5 * 7),
        ("BatchMatMulV2", [(4, 5, 3), (5, 7)], [(4, 3, 7)], {"adj_x": True}, 4 * 2 * 3 * 5 * 7),
        ("BatchMatMul", [(4, 3, 5), (4, 7, 5)], [(4, 3, 7)], {"adj_y": True}, 4 * 2 * 3 * 5 * 7),
        ("Mean", [(8, 100), (1,)], [(8,)], {}, 800),
        ("Sum", [(8, 100), (2,)], [()], {}, 800),
        ("Relu", [(8, 100)], [(8, 100)], {}, 800),
        ("AddV2", [(8, 100), (100,)], [(8, 100)], {}, 800),
        ("AddN", [(9,), (9,), (9,), (9,)], [(9,)], {}, 27),
        ("AddN", [(9,)], [(9,)], {}, 9),
        ("Fill", [(2,), ()], [(8, 100)], {}, 800),
        ("MaxPool", [(1, 8, 8, 3)], [(1, 4, 4, 3)], {"ksize": (1, 3, 3, 1)}, 48 * 9),
        (
            "MaxPoolGrad",
            [(1, 8, 8, 3), (1, 4, 4, 3), (1, 4, 4, 3)],
            [(1, 8, 8, 3)],
            {"ksize": (1, 3, 3, 1)},
            48 * 9,
        ),
        ("AvgPoolGrad", [(4,), (1, 4, 4, 3)], [(1, 8, 8, 3)], {"ksize": (1, 2, 2, 1)}, 48 * 4),
        ("NoOp", [], [], {}, 0),
    ],
)
def test_operations_counted_by_hand(
    kind: str, inputs: list[Shape], outputs: list[Shape], attributes: dict[str, Any], expected: int
) -> None:
    operation = _operation(kind, inputs, outputs, **attributes)
    assert floating_point_operations(operation) == expected


@pytest.mark.parametrize(
    ("equation", "inputs", "output", "combinations"),
    [
        ("ab,bc->ac", [(3, 5), (5, 7)], (3, 7), 3 * 5 * 7),
        ("bshd,bthd->bhst", [(2, 6, 4, 8), (2, 9, 4, 8)], (2, 4, 6, 9), 2 * 4 * 6 * 9 * 8),
        ("a,b->ab", [(3,), (5,)], (3, 5), 15),
        ("ab->b", [(3, 5)], (5,), 15),
        ("...a,ab->...b", [(2, 3, 5), (5, 7)], (2, 3, 7), 2 * 3 * 5 * 7),
        ("x...a,ab->x...b", [(9, 2, 3, 5), (5, 7)], (9, 2, 3, 7), 9 * 2 * 3 * 5 * 7),
        ("...ab,...bc->...ac", [(4, 3, 5), (4, 5, 7)], (4, 3, 7), 4 * 3 * 5 * 7),
        ("...ab,...bc->...ac", [(2, 1, 3, 5), (4, 5, 7)], (2, 4, 3, 7), 2 * 4 * 3 * 5 * 7),
        ("ab...,bc...->ac...", [(3, 5, 2), (5, 7, 2)], (3, 7, 2), 3 * 5 * 7 * 2),
        ("ab, bc -> ac", [(3, 5), (5, 7)], (3, 7), 3 * 5 * 7),
    ],
)
def test_einsum_does_two_operations_for_every_combination(
    equation: str, inputs: list[Shape], output: Shape, combinations: int
) -> None:
    operation = _operation("Einsum", inputs, [output], equation=equation)
    assert floating_point_operations(operation) == 2 * combinations


ROOF = Roofline(Device(1000, 100, launch=2, dispatch=0.5, slowness={"Tanh": 3, BROADCASTING: 5}))


@pytest.mark.parametrize(
    ("operation", "seconds"),
    [
        (_operation("MatMul", [(100, 100), (100, 100)], [(100, 100)]), 2e6 / 1000),
        (_operation("Relu", [(50,)], [(50,)]), 400 / 100),
        (_operation("Tanh", [(50,)], [(50,)]), 3 * 400 / 100),
        (_operation("Mul", [(9, 50), (50,)], [(9, 50)]), 5 * 4 * (2 * 450 + 50) / 100),
        (_operation("Relu", [(5,)], [(5,)]), 2),
        (_operation("Shape", [(1000,)], [(1,)]), 0.5),
        (_operation("Reshape", [(1000,), (2,)], [(10, 100)]), 0.5),
        (_operation("NoOp", [], []), 0.5),
    ],
)
def test_the_lower_roof_decides_or_the_launch(operation: Operation, seconds: float) -> None:
    assert ROOF.cost(operation) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize("model", [FloatingPointOperations(), Roofline()])
@pytest.mark.parametrize("kind", ["NoOp", "Reshape", "Relu", "Const", "MadeUp"])
def test_nothing_is_free(model: Any, kind: str) -> None:
    for inputs in ([], [(0, 5)], [(-1,)]):
        assert model.cost(_operation(kind, inputs, inputs)) > 0


def test_arithmetic_alone_is_counted_as_it_is() -> None:
    product = _operation("MatMul", [(3, 5), (5, 7)], [(3, 7)])
    assert FloatingPointOperations().cost(product) == 210
    assert FloatingPointOperations().cost(_operation("NoOp", [], [])) == 1


@pytest.mark.parametrize("kind", ["CPU", "GPU", "TPU"])
def test_on_every_device_a_convolution_costs_more_than_what_follows_it(kind: str) -> None:
    device = Roofline(device_ceilings(kind))
    features = (32, 56, 56, 64)
    convolution = _operation("Conv2D", [features, (3, 3, 64, 64)], [features])
    assert device.cost(convolution) > device.cost(_operation("Relu", [features], [features]))


def test_a_product_of_a_tensor_of_unknown_rank_has_a_cost():
    """As what a Python function returned: nothing is known of it."""
    unknown, known = TensorSize("float32", ()), TensorSize("float32", (8, 4))
    for kind in ("MatMul", "Conv2D", "BatchMatMulV2"):
        assert Roofline().cost(Operation(kind, (unknown, known), (unknown,))) > 0
