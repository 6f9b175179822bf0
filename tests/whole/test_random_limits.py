"""Random networks at limits of memory; the long form is `python -m tests.random_limits`."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def test_a_network_of_which_there_is_enough_memory_trains_to_the_same_bits():
    """Near a limit it is partly chance which plan fits."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.random_limits", "--first", "2", "--count", "1"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert re.search(r"^1 trained$", done.stdout, re.MULTILINE), done.stdout
