"""Random networks train to the same bits; the long form is `python -m tests.random_steps`."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

COUNT = 10


def test_random_networks_train_to_the_same_bits():
    done = subprocess.run(
        [sys.executable, "-m", "tests.random_steps", "--count", str(COUNT)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    found = re.search(r"(\d+) networks: equal .*; (\d+) with recomputed operations", done.stdout)
    networks, again = map(int, found.groups())
    assert networks == COUNT
    assert again >= networks // 3
