"""The seconds of planning are counted once each, by what they went into."""

from __future__ import annotations

import pytest

from checkmate_tf import phases
from checkmate_tf.phases import in_words, phase, seconds_so_far, stopwatch


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(phases, "time", clock)
    return clock


def test_a_phase_inside_another_one_counts_for_itself_alone(clock: Clock) -> None:
    with stopwatch({"trace": 1.0}) as watch:
        clock.now += 50  # between phases
        with phase("solve"):
            clock.now += 3
            with phase("trials"):
                clock.now += 5
                with phase("emit"):
                    clock.now += 7
                assert seconds_so_far() == {"trace": 1, "solve": 3, "trials": 5, "emit": 7}
            clock.now += 11
    assert watch.seconds == {"trace": 1, "solve": 14, "trials": 5, "emit": 7}


def test_a_phase_that_fails_has_ended(clock: Clock) -> None:
    def fail() -> None:
        with phase("solve"):
            clock.now += 2
            raise ValueError("no")

    with stopwatch() as watch:
        with pytest.raises(ValueError, match="no"):
            fail()
        clock.now += 50
        with phase("emit"):
            clock.now += 1
    assert watch.seconds == {"solve": 2, "emit": 1}


def test_without_a_stopwatch_nothing_is_counted(clock: Clock) -> None:
    with phase("solve"):
        clock.now += 1
    assert seconds_so_far() == {}
    assert in_words({}) == ""


def test_the_words_fit_a_line() -> None:
    # Plans are tried or compiled, never both.
    most = {each: 999.0 for each in phases.ORDER if each != "trials"}
    _, _, parts = in_words(most).partition(": ")
    assert len(parts) <= 79 - 22
