from __future__ import annotations

import pytest

from profiles.operation import Operation, TensorSize
from profiles.profile import SHORTEST, Measurement, Profile
from profiles.profiled import ProfiledCosts
from profiles.roofline import Roofline, device_ceilings

SIZE = TensorSize("float32", (1024, 1024))
RELU, SELU = Operation("Relu", (SIZE,), (SIZE,)), Operation("Selu", (SIZE,), (SIZE,))


def test_what_was_measured_is_what_it_costs() -> None:
    costs = ProfiledCosts(Profile("a", "1", {RELU: Measurement(0.7, 0)}), device_ceilings())
    assert costs.cost(RELU) == 0.7


def test_what_is_missing_costs_what_the_calibrated_device_takes_and_is_counted() -> None:
    """Selu moves as many bytes as Relu, which took 0.7 s: a far slower device than assumed."""
    costs = ProfiledCosts(Profile("a", "1", {RELU: Measurement(0.7, 0)}), device_ceilings())
    assert costs.cost(SELU) == pytest.approx(0.7, rel=1e-3)
    assert costs.missing([RELU, SELU, RELU, SELU, SELU]) == 3


def test_a_time_of_nothing_is_no_time() -> None:
    """As an H200 was said to add 700 MB in, when other processes used it."""
    entries = {RELU: Measurement(0.7, 0), SELU: Measurement(SHORTEST, 0)}
    costs = ProfiledCosts(Profile("a", "1", entries), device_ceilings())
    assert costs.cost(SELU) == pytest.approx(0.7, rel=1e-3)
    assert costs.missing([SELU]) == 0


def test_what_was_only_compiled_has_no_time() -> None:
    profile = Profile("a", "1", {RELU: Measurement(None, 5)})
    costs = ProfiledCosts(profile, device_ceilings())
    assert costs.cost(RELU) == Roofline(device_ceilings()).cost(RELU)
    assert costs.missing([RELU]) == 1
    assert profile.workspaces == {RELU: 5}
