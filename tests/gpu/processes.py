"""Processes of their own, for what TensorFlow settles when it starts: devices and allocators."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any


def ran(script: str, *arguments: object, **environment: object) -> Any:
    """What a process prints as its last line, in JSON.

    Args:
        script: in Python.
        arguments: of it, as text.
        environment: more variables of the environment.
    """
    ended = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])
