"""Ctrl-C in planning comes out; the long form is `python -m tests.random_interrupts`."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading

import pytest

from checkmate_tf.interrupts import noted_interrupts


@pytest.mark.slow
def test_interrupts_at_random_moments_of_planning():
    done = subprocess.run(
        [sys.executable, "-m", "tests.random_interrupts", "--count", "10"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    came = int(re.search(r"(\d+) of 10 interrupts in time", done.stdout).group(1))
    assert came > 0


def test_what_somebody_catches_is_passed_on():
    with noted_interrupts() as interrupts:
        interrupts.pass_on()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupts.pass_on()


def test_the_users_own_handler_is_called_and_put_back():
    came = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        with noted_interrupts() as interrupts:
            signal.raise_signal(signal.SIGINT)
        assert came == [signal.SIGINT]
        assert interrupts.noted
        signal.raise_signal(signal.SIGINT)
        assert len(came) == 2
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_notes_nothing_and_sets_no_handler():
    found = []

    def work():
        with noted_interrupts() as interrupts:
            found.append((interrupts.noted, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(False, signal.getsignal(signal.SIGINT))]
