"""Settings that must be made before TensorFlow starts."""

from __future__ import annotations

import os
import signal

# Counts memory whether oneDNN is on or off.
os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# Tests send themselves Ctrl-C, which a shell lets its background jobs ignore.
signal.signal(signal.SIGINT, signal.default_int_handler)
