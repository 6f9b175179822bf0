from __future__ import annotations

from dataclasses import astuple, replace

import pytest

from profiles.calibration import calibrated, slowness
from profiles.operation import Operation, TensorSize
from profiles.roofline import Device, Roofline

TRUE = Device(rate=50e9, bandwidth=8e9, launch=3e-6, depthwise=0.2)
GUESS = Device(rate=1e9, bandwidth=1e9, launch=1e-3, depthwise=0.9)


def _square(size: int) -> TensorSize:
    return TensorSize("float32", (size, size))


def _elementwise(size: int) -> Operation:
    return Operation("Relu", (_square(size),), (_square(size),))


def _product(size: int) -> Operation:
    return Operation("MatMul", (_square(size),) * 2, (_square(size),))


def _depthwise(side: int) -> Operation:
    image, window = TensorSize("float32", (8, side, side, 32)), TensorSize("float32", (3, 3, 32, 1))
    return Operation("DepthwiseConv2dNative", (image, window), (image,))


OPERATIONS = [
    *map(_elementwise, (4, 8, 600, 1024, 2048)),
    *map(_product, (600, 1024)),
    *map(_depthwise, (64, 128)),
]


def test_a_device_is_recovered_from_what_it_would_take() -> None:
    roof = Roofline(TRUE)
    seconds = {op: roof.cost(op) for op in OPERATIONS}
    assert astuple(calibrated(GUESS, seconds)) == pytest.approx(astuple(TRUE), rel=2e-2)


def test_a_kind_that_is_slow_says_nothing_of_others() -> None:
    roof = Roofline(TRUE)
    seconds = {op: roof.cost(op) for op in OPERATIONS}
    slow = [replace(_elementwise(side), type="MaxPoolGrad") for side in (600, 1024)]
    times = (8, 12)
    seconds |= {op: roof.cost(op) * each for op, each in zip(slow, times, strict=True)}
    device = calibrated(GUESS, seconds)
    assert astuple(device) == pytest.approx(astuple(TRUE), rel=2e-2)
    found = Roofline(device, slowness(device, seconds))
    of_slow = [seconds[op] for op in slow]
    assert sum(map(found.cost, slow)) == pytest.approx(sum(of_slow), rel=2e-2)
    for op in OPERATIONS:
        assert found.cost(op) == pytest.approx(seconds[op], rel=2e-2)


def test_a_kind_that_found_its_inputs_in_a_cache_is_no_faster_than_others() -> None:
    roof = Roofline(TRUE)
    seconds = {op: roof.cost(op) for op in OPERATIONS}
    cached = replace(_elementwise(700), type="Neg")
    seconds[cached] = roof.cost(cached) / 4
    device = calibrated(GUESS, seconds)
    assert "Neg" not in slowness(device, seconds)
    assert device.bandwidth == pytest.approx(TRUE.bandwidth, rel=2e-2)


@pytest.mark.parametrize("seconds", [{}, {_product(600): 0.01}])
def test_where_nothing_tells_the_guess_stays(seconds: dict[Operation, float]) -> None:
    found = calibrated(GUESS, seconds)
    assert (found.bandwidth, found.launch, found.depthwise) == (
        GUESS.bandwidth,
        GUESS.launch,
        GUESS.depthwise,
    )


def test_nothing_that_was_measured_makes_a_device_infinite() -> None:
    seconds = {_elementwise(600): 1e-7, _elementwise(4): 1e-3}
    assert 0 < calibrated(GUESS, seconds).bandwidth < float("inf")
