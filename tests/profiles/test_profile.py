from __future__ import annotations

import pytest

from profiles.operation import Operation
from profiles.profile import Measurement, Profile
from solvers import CheckmateError
from tests.messages import raises

OLD, NEW = Measurement(1.0, 1), Measurement(2.0, None)
RELU, SELU = Operation("Relu"), Operation("Selu")


def test_the_other_profile_wins() -> None:
    first = Profile("a", "1", {RELU: OLD, SELU: OLD})
    merged = first.merged(Profile("a", "1", {RELU: NEW}))
    assert merged.entries == {RELU: NEW, SELU: OLD}
    assert first.entries[RELU] == OLD


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (Profile("b", "1"), ("profile-of-another-device", "'b'", "'a'", "other_device=True")),
        (Profile("a", "2"), ("profiles-of-two-releases", "1 and 2")),
    ],
)
def test_profiles_of_different_things_stay_apart(other: Profile, told: tuple[str, ...]) -> None:
    with raises(CheckmateError, *told):
        Profile("a", "1").merged(other)
