from __future__ import annotations

from profiles.fusion import fuse
from profiles.operation import Operation, TensorSize
from profiles.roofline import Device, Roofline, does_products, floating_point_operations

IMAGE, FILTER = TensorSize("float32", (2, 8, 8, 4)), TensorSize("float32", (3, 3, 4, 6))
BIAS, FEATURES = TensorSize("float32", (6,)), TensorSize("float32", (2, 8, 8, 6))
CONVOLUTION = Operation(
    "Conv2D", (IMAGE, FILTER), (FEATURES,), (("padding", "SAME"), ("strides", (1, 1, 1, 1)))
)
ADDITION = Operation("BiasAdd", (FEATURES, BIAS), (FEATURES,))
SHAPE = TensorSize("int32", (4,))
FILTER_GRADIENT = Operation(
    "Conv2DBackpropFilter",
    (IMAGE, SHAPE, FEATURES),
    (FILTER,),
    (("padding", "SAME"), ("strides", (1, 1, 1, 1))),
    ((1, FILTER.shape),),
)
BIAS_GRADIENT = Operation("BiasAddGrad", (FEATURES,), (BIAS,))
FUSED = fuse([CONVOLUTION, ADDITION], [[0, 1], [3, 2]], [IMAGE, FILTER, BIAS], [4])
GRADIENTS = fuse(
    [BIAS_GRADIENT, FILTER_GRADIENT], [[0], [1, 2, 0]], [FEATURES, IMAGE, SHAPE], [3, 4]
)
FILTER_FIRST = fuse(
    [FILTER_GRADIENT, BIAS_GRADIENT], [[1, 2, 0], [0]], [FEATURES, IMAGE, SHAPE], [3, 4]
)


def test_what_is_between_the_parts_is_neither_read_nor_written() -> None:
    assert FUSED.type == "Conv2D+BiasAdd"
    assert FUSED.inputs == (IMAGE, FILTER, BIAS)
    assert FUSED.outputs == (FEATURES,)
    assert FUSED.bytes_moved == IMAGE.bytes + FILTER.bytes + BIAS.bytes + FEATURES.bytes


def test_the_arithmetic_is_that_of_the_parts() -> None:
    both = floating_point_operations(CONVOLUTION) + floating_point_operations(ADDITION)
    assert floating_point_operations(FUSED) == both
    assert does_products(FUSED)
    assert not does_products(ADDITION)


def test_a_roofline_bills_one_launch() -> None:
    roof = Roofline(Device(rate=1e30, bandwidth=1e30, launch=1.0, depthwise=1.0))
    assert roof.cost(FUSED) == 1.0


def test_constants_are_found_at_the_fusions_own_inputs() -> None:
    assert GRADIENTS.constants == ((2, FILTER.shape),)
    assert GRADIENTS.outputs == (BIAS, FILTER)


def test_equal_fusions_are_the_same_key() -> None:
    again = fuse([CONVOLUTION, ADDITION], [[0, 1], [3, 2]], [IMAGE, FILTER, BIAS], [4])
    assert {FUSED: 1}[again] == 1
    assert fuse([CONVOLUTION, ADDITION], [[0, 1], [3, 2]], [IMAGE, FILTER, BIAS], [3, 4]) != FUSED
