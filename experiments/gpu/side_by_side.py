"""Cases in processes of their own: several plan at once, times are taken one after the other."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from experiments.gpu.cases import Case

Found = dict[str, Any]

_LOG = re.compile(r"[IWE]\d{4} |WARNING|    @ ")
"""Lines of TensorFlow's log, and addresses in its code."""

_DETERMINISTIC = {"TF_DETERMINISTIC_OPS": "1", "TF_CUDNN_DETERMINISTIC": "1"}
_DETERMINISTIC_XLA = "--xla_gpu_deterministic_ops=true"
"""Where TensorFlow's own kernels are asked to be deterministic, Keras leaves XLA."""


_NAME = """
import tensorflow as tf
gpus = tf.config.list_physical_devices("GPU")
print(tf.config.experimental.get_device_details(gpus[0]).get("device_name", "GPU") if gpus else "")
"""


class Process:
    """One case that runs.

    Args:
        case: what it is asked.
        asked: of a case with a limit: {"limit": bytes}, and "budget" in bytes.
    """

    def __init__(self, case: Case, **asked: int) -> None:
        self.case = case
        environment = {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ, "CHECKMATE_TF_PLANS": "off"}
        environment.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")  # for those beside it
        if case.look == "bits" and case.xla:
            flags = environment.get("XLA_FLAGS", "")
            environment["XLA_FLAGS"] = f"{flags} {_DETERMINISTIC_XLA}".strip()
        elif case.look == "bits":
            environment |= _DETERMINISTIC
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed with this object)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "experiments.gpu.trial", json.dumps(asdict(case) | asked)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self._found: Found | None = None
        self._is_ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_until_ready(self, deadline: float) -> None:
        """Until its times can be taken, or it has ended; at the deadline it is ended."""
        if not self._is_ready.wait(max(0.0, deadline - time.monotonic())):
            self._process.kill()

    def finished(self, patience: float) -> Found:
        """Let its times be taken, and wait for its figures; {"error": …} if it fails."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        self._reader.join(patience)
        self._process.kill()
        self._process.wait()
        if self._found is not None:
            return self._found
        self._errors.seek(0)
        lines = [line for line in self._errors if line.strip() and not _LOG.match(line)]
        return {"error": f"{''.join(lines[-5:])}exit status {self._process.returncode}"[-1500:]}

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line) if line.startswith("{") else {}
            self._found = said.get("done")
            if said:
                self._is_ready.set()
        self._is_ready.set()


def run(cases: Sequence[Case], jobs: int, patience: float) -> Iterator[tuple[Case, Found]]:
    """Each case with what it found.

    Args:
        cases: what is run.
        jobs: how many plan at once. Each holds its plain step's peak.
        patience: seconds until a case has to be ready, and those that its times may take.
    """
    for begin in range(0, len(cases), jobs):
        deadline = time.monotonic() + patience
        running = [Process(case) for case in cases[begin : begin + jobs]]
        for each in running:
            each.wait_until_ready(deadline)
        for each in running:
            yield each.case, each.finished(patience)


def run_within(case: Case, patience: float, steps: Found) -> Found:
    """A case that looks at a limit: the plain step, and the planned one, each by itself.

    Args:
        case: what is run.
        patience: seconds for each of both.
        steps: what the same model's case found without a limit.
    """
    budget, plain = steps["budget"], max(steps["plain"]["peaks"][1:])
    limit = (budget + plain) // 2
    return {
        "limit": limit,
        "plain": Process(case, limit=limit).finished(patience),
        "ours": Process(case, limit=limit, budget=budget).finished(patience),
    }


def name_of_gpu() -> str:
    """By a process that ends, for TensorFlow holds on to a GPU; empty if there is none."""
    command = [sys.executable, "-c", _NAME]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return said.strip()
