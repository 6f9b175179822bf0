from __future__ import annotations

from dataclasses import replace

import pytest

from profiles.calibration import calibrated
from profiles.kinds import BROADCASTING
from profiles.operation import Operation, TensorSize
from profiles.profile import SHORTEST
from profiles.roofline import Device, Roofline, device_ceilings
from tests.fusions import ADDITION, CONVOLUTION, FUSED

SLOW = {"DepthwiseConv2dNative": 5.0, BROADCASTING: 2.5, "Conv2D": 1.5}
TRUE = Device(rate=50e9, bandwidth=8e9, launch=3e-6, dispatch=7e-7, slowness=SLOW)
GUESS = Device(rate=10e9, bandwidth=3e9, launch=9e-6, dispatch=9e-6)


def _square(size: int) -> TensorSize:
    return TensorSize("float32", (size, size))


def _elementwise(size: int) -> Operation:
    return Operation("Relu", (_square(size),), (_square(size),))


def _broadcasting(size: int) -> Operation:
    return Operation("Mul", (_square(size), TensorSize("float32", (size,))), (_square(size),))


def _product(size: int) -> Operation:
    return Operation("MatMul", (_square(size),) * 2, (_square(size),))


def _depthwise(side: int) -> Operation:
    image, window = TensorSize("float32", (8, side, side, 32)), TensorSize("float32", (3, 3, 32, 1))
    return Operation("DepthwiseConv2dNative", (image, window), (image,))


def _convolution(side: int) -> Operation:
    image = TensorSize("float32", (8, side, side, 64))
    window = TensorSize("float32", (1, 1, 64, 64))
    return Operation("Conv2D", (image, window), (image,))


OPERATIONS = [
    Operation("Shape", (_square(600),), (TensorSize("int32", (2,)),)),
    *map(_elementwise, (4, 8, 600, 1024, 2048)),
    *map(_broadcasting, (600, 1024)),
    *map(_product, (600, 1024)),
    *map(_depthwise, (64, 128)),
    *map(_convolution, (64, 128)),
]
SECONDS = {op: Roofline(TRUE).cost(op) for op in OPERATIONS}


def _figures(device: Device) -> tuple[float, ...]:
    slow = (device.slowness.get(kind, 1.0) for kind in (*SLOW, "Relu", "MatMul"))
    return (device.rate, device.bandwidth, device.launch, device.dispatch, *slow)


def test_a_device_is_recovered_from_what_it_would_take() -> None:
    found = calibrated(GUESS, SECONDS)
    assert _figures(found) == pytest.approx(_figures(TRUE), rel=1e-6)
    for op in OPERATIONS:
        assert Roofline(found).cost(op) == pytest.approx(SECONDS[op], rel=1e-6)


def test_launches_are_told_from_operations_that_are_larger_than_any_cache() -> None:
    """What takes less than the launch of another does not make the memory infinitely fast."""
    seconds = {_elementwise(8): 8.5e-6, _elementwise(1024): 7.1e-6, _elementwise(16384): 500e-6}
    found = calibrated(device_ceilings("GPU"), seconds)
    assert found.launch == 8.5e-6
    assert found.bandwidth == pytest.approx(_elementwise(16384).bytes_moved / 500e-6)


def test_a_kind_that_is_slow_says_nothing_of_others() -> None:
    slow = [replace(_elementwise(side), type="MaxPoolGrad") for side in (600, 1024)]
    took = {op: Roofline(TRUE).cost(op) * times for op, times in zip(slow, (8, 12), strict=True)}
    found = calibrated(GUESS, SECONDS | took)
    assert _figures(found) == pytest.approx(_figures(TRUE), rel=1e-6)
    assert found.slowness["MaxPoolGrad"] == pytest.approx(10, rel=1e-6)


def test_a_kind_that_found_its_inputs_in_a_cache_is_no_faster_than_others() -> None:
    cached = replace(_elementwise(700), type="Neg")
    found = calibrated(GUESS, SECONDS | {cached: Roofline(TRUE).cost(cached) / 4})
    assert Roofline(found).cost(cached) == pytest.approx(Roofline(TRUE).cost(cached), rel=1e-6)


def test_one_time_that_is_far_off_changes_nothing() -> None:
    off = {_elementwise(800): 1.0, _product(800): 1.0, _elementwise(900): SHORTEST}
    more = {op: Roofline(TRUE).cost(op) for op in map(_product, (700, 900, 1100))}
    found = calibrated(GUESS, SECONDS | more | off)
    assert _figures(found) == pytest.approx(_figures(TRUE), rel=1e-6)


def test_what_surrounds_a_product_is_not_its_own() -> None:
    """A convolution and its bias are measured together; neither ever is alone."""
    seconds = {op: SECONDS[op] for op in OPERATIONS if op.type != "Conv2D"}
    start = replace(GUESS, launch=1e-9)  # beside which the small fusion is large
    found = calibrated(start, seconds | {FUSED: Roofline(TRUE).cost(FUSED)})
    for each in (CONVOLUTION, ADDITION):
        alone = Roofline(found).by_ceilings(each) * found.slowness.get(each.type, 1.0)
        true = Roofline(TRUE).by_ceilings(each) * SLOW.get(each.type, 1.0)
        assert alone == pytest.approx(true, rel=1e-6)


@pytest.mark.parametrize("seconds", [{}, {_product(600): 0.01}, {_product(600): SHORTEST}])
def test_where_nothing_tells_the_guess_stays(seconds: dict[Operation, float]) -> None:
    start = replace(GUESS, slowness={"Tile": 3.0})
    found = calibrated(start, seconds)
    assert (found.bandwidth, found.launch, found.dispatch) == (
        start.bandwidth,
        start.launch,
        start.dispatch,
    )
    assert found.slowness["Tile"] == 3.0


def test_nothing_that_was_measured_makes_a_device_infinite() -> None:
    seconds = {_elementwise(600): 1.1e-7, _elementwise(4): 1e-3}
    assert 0 < calibrated(GUESS, seconds).bandwidth < float("inf")
