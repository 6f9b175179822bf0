"""Settings that must be made before TensorFlow starts."""

from __future__ import annotations

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# Counts memory whether oneDNN is on or off.
os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# Tests send themselves Ctrl-C, which a shell lets its background jobs ignore.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


@pytest.fixture(scope="module", autouse=True)
def _earlier_modules_are_no_garbage():
    """What is there stays: each of many collections would go through all of it, for a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def memory_in_one_piece():
    """For tests that measure: what earlier ones have left is none of their memory."""
    from tests import memory  # needs TensorFlow, which many modules do without

    with memory.memory_in_one_piece():
        yield
