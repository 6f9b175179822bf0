"""The examinations, each in a process of its own, so that none can end or hide the others.

    python -m checkmate_tf.doctor.examinations device finding.json

A kernel that crashes takes its process along, and one that has touched a GPU keeps its memory; so
nothing of TensorFlow is loaded where the findings are gathered.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from pkgutil import resolve_name

from checkmate_tf.doctor.finding import Finding
from solvers.errors import CheckmateError
from solvers.graph.files import read_json, write_whole

EXAMINATIONS = {
    "packages": "checkmate_tf.doctor.packages:packages",
    "device": "checkmate_tf.doctor.device:device",
    "kept files": "checkmate_tf.doctor.kept_files:kept_files",
    "solvers": "checkmate_tf.doctor.backends:backends",
    "step": "checkmate_tf.doctor.steps:step",
    "step, XLA": "checkmate_tf.doctor.steps:compiled_step",
}
"""What is examined, and the function that returns the `Finding`."""

SECONDS = 600.0
"""That an examination may take; a step takes half a minute where nothing else runs."""

_COUNTING = {"TF_CPU_ALLOCATOR_USE_BFC": "true"}
"""Lets a CPU's memory be counted, without which no step's peak could be judged."""

_LINES = 12
"""Of a traceback, or of what a process last said: the end tells most."""

_REPORT = "attach this report to a bug report"


def examined(name: str, seconds: float = SECONDS) -> Finding:
    """What the examination `name` finds in a fresh process, whatever becomes of that."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "finding.json"
        command = [sys.executable, "-m", "checkmate_tf.doctor.examinations", name, str(file)]
        try:
            ended = subprocess.run(
                command,
                env={**(_COUNTING if name.startswith("step") else {}), **os.environ},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            return Finding(False, f"it took more than {seconds:.0f} s and was stopped; {_REPORT}")
        if ended.returncode or not file.exists():
            lines = ended.stderr.rstrip().splitlines()[-_LINES:]
            return Finding(False, _about_end(ended.returncode), lines=lines)
        return Finding(**read_json(file))


def finding_of(examination: Callable[[], Finding]) -> Finding:
    """What an examination returns, or what its error says."""
    try:
        return examination()
    except Exception as error:
        lines = "".join(traceback.format_exception(error)).rstrip().splitlines()
        return Finding(False, _about(error), lines=lines[-_LINES:])


def _about(error: Exception) -> str:
    """What is wrong, and what to do."""
    if isinstance(error, ModuleNotFoundError) and error.name in ("tensorflow", "keras"):
        return f"{error.name} is not installed: pip install 'checkmate_tf[cpu]', or [gpu]"
    message = " ".join(str(error).split())
    if isinstance(error, CheckmateError):  # it says what to do
        return message
    return f"{type(error).__name__}: {message[:200]}; {_REPORT}"


def _about_end(status: int) -> str:
    """Of a process that left no finding."""
    if status >= 0:
        return f"its process ended with status {status} before there was a finding; {_REPORT}"
    names = {each.value: each.name for each in signal.Signals}
    name = names.get(-status, f"signal {-status}")
    why = {
        "SIGKILL": "as the system does where memory runs out: end what else runs, and try again",
        "SIGILL": "as where the processor lacks instructions that a package was built for: install "
        "one that was built for it",
    }.get(name, _REPORT)
    return f"its process was ended by {name}, {why}"


def main() -> int:
    """Do the examination that the first argument names; the finding goes into the second one."""
    name, file = sys.argv[1:]
    finding = finding_of(lambda: resolve_name(EXAMINATIONS[name])())
    write_whole(file, json.dumps(asdict(finding)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
