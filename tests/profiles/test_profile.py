from __future__ import annotations

import pytest

from profiles.operation import Operation
from profiles.profile import Measurement, Profile
from solvers import CheckmateError

OLD, NEW = Measurement(1.0, 1), Measurement(2.0, None)
RELU, SELU = Operation("Relu"), Operation("Selu")


def test_the_other_profile_wins() -> None:
    first = Profile("a", "1", {RELU: OLD, SELU: OLD})
    merged = first.merged(Profile("a", "1", {RELU: NEW}))
    assert merged.entries == {RELU: NEW, SELU: OLD}
    assert first.entries[RELU] == OLD


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Profile("b", "1"), "measured on 'b', and this is 'a'.*other_device=True"),
        (Profile("a", "2"), "TensorFlow 1 and 2 can't be merged"),
    ],
)
def test_profiles_of_different_things_stay_apart(other: Profile, message: str) -> None:
    with pytest.raises(CheckmateError, match=message):
        Profile("a", "1").merged(other)
