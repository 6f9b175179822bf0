from __future__ import annotations

import pytest

from profiles.fusion import fuse
from profiles.roofline import Device, Roofline, does_products, floating_point_operations
from tests.fusions import ADDITION, BIAS, CONVOLUTION, FEATURES, FILTER, FUSED, GRADIENTS, IMAGE


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


def test_a_roofline_bills_one_launch_and_all_parts() -> None:
    assert Roofline(Device(rate=1e30, bandwidth=1e30, launch=1.0, dispatch=1.0)).cost(FUSED) == 1.0
    roof = Roofline(Device(rate=1.0, bandwidth=1.0, launch=1e-9, dispatch=1.0))
    assert roof.cost(FUSED) == pytest.approx(roof.cost(CONVOLUTION) + roof.cost(ADDITION))


def test_constants_are_found_at_the_fusions_own_inputs() -> None:
    assert GRADIENTS.constants == ((2, FILTER.shape),)
    assert GRADIENTS.outputs == (BIAS, FILTER)


def test_equal_fusions_are_the_same_key() -> None:
    again = fuse([CONVOLUTION, ADDITION], [[0, 1], [3, 2]], [IMAGE, FILTER, BIAS], [4])
    assert {FUSED: 1}[again] == 1
    assert fuse([CONVOLUTION, ADDITION], [[0, 1], [3, 2]], [IMAGE, FILTER, BIAS], [3, 4]) != FUSED
