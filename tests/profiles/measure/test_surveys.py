from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf

import profiles.measure.surveys
from profiles import store
from profiles.devices import device_name
from profiles.measure.measurement import NotMeasurableError
from profiles.measure.surveys import survey
from profiles.operation import Operation
from profiles.profile import Measurement, Profile

RELU, SELU, STATEFUL = Operation("Relu"), Operation("Selu"), Operation("Stateful")


class Laboratory:
    """Stands for the device: every operation takes as many seconds as have been measured."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def measure(self, operation: Operation, device: str) -> Measurement:
        self.asked.append(operation.type)
        if operation == STATEFUL:
            raise NotMeasurableError("no")
        if operation.type == "Interrupt":
            raise KeyboardInterrupt
        return Measurement(len(self.asked), 0)


@pytest.fixture(autouse=True)
def laboratory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    monkeypatch.setenv("CHECKMATE_TF_CACHE", str(tmp_path / "cache"))
    laboratory = Laboratory()
    monkeypatch.setattr(profiles.measure.surveys, "measure", laboratory.measure)
    return laboratory


def test_every_operation_is_measured_once(laboratory: Laboratory) -> None:
    profile = survey([RELU, SELU, RELU, RELU])
    assert laboratory.asked == ["Relu", "Selu"]
    assert (profile.entries[RELU].seconds, profile.entries[SELU].seconds) == (1, 2)
    assert (profile.device, profile.tensorflow) == (device_name("CPU:0"), tf.__version__)


def test_what_is_in_the_cache_is_not_measured_again(laboratory: Laboratory) -> None:
    survey([RELU])
    assert survey([RELU, SELU]).entries[RELU].seconds == 1
    assert laboratory.asked == ["Relu", "Selu"]
    assert survey([RELU], again=True).entries[RELU].seconds == 3


def test_what_was_just_measured_is_what_is_read_the_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    third = Measurement(1 / 3, 0)
    monkeypatch.setattr(profiles.measure.surveys, "measure", lambda operation, device: third)
    assert survey([RELU]).seconds == survey([RELU]).seconds


def test_a_workspace_alone_is_no_measurement(laboratory: Laboratory) -> None:
    known = {RELU: Measurement(None, 3)}
    store.remember(Profile(device_name(), tf.__version__, known))
    assert survey([RELU]).seconds[RELU] == 1  # a profile of this machine may be shipped


def test_what_cannot_be_measured_is_left_out(laboratory: Laboratory) -> None:
    assert STATEFUL not in survey([STATEFUL, RELU]).entries
    assert laboratory.asked == ["Stateful", "Relu"]


def test_an_interrupted_survey_keeps_what_it_has() -> None:
    with pytest.raises(KeyboardInterrupt):
        survey([RELU, Operation("Interrupt"), SELU])
    kept = store.known_profile(device_name(), tf.__version__).entries
    assert RELU in kept
    assert SELU not in kept


def test_progress_sees_what_is_to_be_measured() -> None:
    survey([RELU])
    seen: list[Operation] = []

    def watch(operations):
        for each in operations:
            seen.append(each)
            yield each

    survey([RELU, SELU, SELU], progress=watch)
    assert seen == [SELU]
