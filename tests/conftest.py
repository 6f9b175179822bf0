"""Settings that must be made before TensorFlow starts."""

from __future__ import annotations

import os
import signal

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
