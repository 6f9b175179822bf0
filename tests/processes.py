"""Processes of their own, for what is decided when TensorFlow is imported."""

from __future__ import annotations

import os
import subprocess
import sys


def printed(code: str, given: str = "", **environment: str) -> str:
    """What a process prints that runs `code` and reads what is `given`; its allocator counts."""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        input=given,
        env={**os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "true", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout
