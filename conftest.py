"""Settings of all tests, doctests too, that must be made before TensorFlow starts."""

from __future__ import annotations

import gc
import os
import signal
import tempfile

import pytest
from hypothesis import HealthCheck, settings

from tests.costs import Costs

# Keeps the user's cache out of the tests, and the tests out of the user's cache.
_CACHE = tempfile.TemporaryDirectory(prefix="checkmate_tf-tests-")  # until the process ends
os.environ["CHECKMATE_TF_CACHE"] = _CACHE.name
os.environ["CHECKMATE_TF_PLANS"] = "off"

# Tables are 80 columns wide, whatever the terminal; a test of another width sets its own.
os.environ["COLUMNS"] = "80"

# Counts memory whether oneDNN is on or off.
os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# Tests send themselves Ctrl-C, which a shell lets its background jobs ignore.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is, not whether the code is right.
_ANY_MACHINE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("every change", max_examples=40, **_ANY_MACHINE)
settings.register_profile("thorough", max_examples=300, **_ANY_MACHINE)
settings.load_profile("every change")


def pytest_configure(config: pytest.Config) -> None:
    """Add up what tests cost."""
    config.pluginmanager.register(Costs())


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
