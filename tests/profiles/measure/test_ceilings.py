"""A device's ceilings: measured once, kept, and what estimates rest on."""

from __future__ import annotations

import pytest
import tensorflow as tf

from profiles.devices import device_name
from profiles.measure.ceilings import costs_of_device, gpu_probes, probes
from profiles.measure.measurement import measure
from profiles.operation import Operation, TensorSize
from profiles.profile import Measurement, Profile
from profiles.store import remember

PROBES = probes("CPU:0")


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CHECKMATE_TF_CACHE", str(tmp_path))
    monkeypatch.setattr("profiles.store.SHIPPED", tmp_path)


def test_every_probe_is_measured_once_and_kept():
    seen: list[Operation] = []
    costs = costs_of_device(progress=lambda operations: seen.extend(operations) or seen)
    assert seen == list(PROBES)
    assert costs.missing(PROBES) == 0
    again: list[Operation] = []
    kept = costs_of_device(progress=lambda operations: again.extend(operations) or again)
    assert again == []
    for each in PROBES:  # files round
        assert kept.cost(each) == pytest.approx(costs.cost(each), rel=0.01)


def test_estimates_rest_on_what_was_measured():
    """Ceilings so far from any real device's that they can only come from these entries."""
    small = [each for each in PROBES if each.bytes_moved < 4096]
    measured = dict.fromkeys(PROBES, Measurement(1000.0, 0))
    measured |= dict.fromkeys(small, Measurement(1.0, 0))
    remember(Profile(device_name(), tf.__version__, measured))
    costs = costs_of_device()
    image = TensorSize("float32", (8, 56, 56, 64))
    bytes_a_second = costs.fallback.device.bandwidth
    assert bytes_a_second < 1e6
    other = Operation("Relu6", (image,), (image,), (("T", "float32"),))
    expected = other.bytes_moved / bytes_a_second
    assert costs.cost(other) == pytest.approx(expected)


def test_a_gpus_probes_are_larger_than_any_cache_and_can_be_run():
    """Those that don't tell a launch; the same at a small size, on whatever device is here."""
    assert all(each.bytes_moved <= 4096 or each.bytes_moved > 200e6 for each in gpu_probes())
    for each in gpu_probes(batch=1, side=16):
        assert measure(each, repeats=1).seconds > 0


def test_what_a_stored_profile_knows_is_taken():
    known = Operation("Selu", (TensorSize("float32", (3,)),), (TensorSize("float32", (3,)),))
    remember(Profile(device_name(), tf.__version__, {known: Measurement(0.5, 0)}))
    assert costs_of_device().cost(known) == 0.5
