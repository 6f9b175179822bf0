"""One program, trained in this process, plainly or within a budget; what came of it.

    python -m experiments.programs.trial "distillation" --output plain.json
    python -m experiments.programs.trial "distillation" --budget 0.6 --output planned.json

The peaks are the allocator's, batch by batch, as a callback of `fit` reads them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # before TensorFlow starts
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "true"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

import checkmate_tf
from checkmate_tf.workloads.trial import turn_off_fusions
from experiments.programs.catalogue import PROGRAMS
from experiments.programs.program import Program
from solvers.graph.files import write_whole

DEVICE = "CPU:0"

Figures = dict[str, Any]


class Watch(keras.callbacks.Callback):  # type: ignore[misc]
    """Reads for each batch: bytes before it and at most, seconds, and the logs, bit by bit."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[int] = []
        self.peaks: list[int] = []
        self.seconds: list[float] = []
        self.logs: list[dict[str, str]] = []

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """The peak begins anew."""
        self.held.append(tf.config.experimental.get_memory_info(DEVICE)["current"])
        tf.config.experimental.reset_memory_stats(DEVICE)
        self._start = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """The batch is over."""
        self.peaks.append(tf.config.experimental.get_memory_info(DEVICE)["peak"])
        self.seconds.append(time.perf_counter() - self._start)
        self.logs.append({name: float(np.mean(each)).hex() for name, each in logs.items()})


def train(program: Program, batch: int, budget: Any = None, **options: Any) -> Figures:
    """What `fit` made of a program.

    Args:
        program: is made anew.
        batch: examples in a batch.
        budget: of `rematerialize`; None trains plainly.
        options: more of `rematerialize`.

    Returns:
        `held`, `peaks`, `seconds` and `logs` of each batch, the first one too, which plans;
        a `digest` of all variables afterwards; `warnings` of ours; the `plan`, if there is one;
        and if `fit` ended in an `error`, its class, what it `said`, and the `least` that it named.
    """
    keras.utils.set_random_seed(0)
    script, watch = program.make(batch), Watch()
    error: Exception | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if budget is not None:
                checkmate_tf.rematerialize(script.model, budget=budget, **options)
            script.fit([watch])
        except Exception as raised:
            error = raised
    plan = getattr(script.model.train_step, "plan", None)
    told = [str(each.message) for each in caught]
    return {
        "held": watch.held,
        "peaks": watch.peaks,
        "seconds": watch.seconds,
        "logs": watch.logs,
        "digest": _digest(script.model),
        "warnings": list(dict.fromkeys(each for each in told if each.startswith("checkmate_tf"))),
        "plan": None if plan is None else {name: getattr(plan, name) for name in _OF_A_PLAN},
        "error": None if error is None else type(error).__name__,
        "refused": isinstance(error, checkmate_tf.CheckmateError),
        "said": "" if error is None else str(error),
        "least": getattr(error, "least", None),
    }


_OF_A_PLAN = (
    "budget", "predicted_peak", "measured_peak", "baseline_peak", "measured_baseline_peak",
    "overhead", "notes",
)  # fmt: skip


def _digest(model: Any) -> str:
    digest = hashlib.sha256()
    for each in model.variables:
        digest.update(np.asarray(each).tobytes())
    return digest.hexdigest()


def _share_or_bytes(text: str) -> float | int:
    return int(text) if text.isdecimal() else float(text)


def main() -> int:
    """Train as the arguments say, and write the figures."""
    parser = argparse.ArgumentParser(description="one program, trained once")
    parser.add_argument("program", choices=PROGRAMS, metavar="PROGRAM")
    parser.add_argument("--budget", type=_share_or_bytes, help="a share, or bytes; else plainly")
    parser.add_argument("--batch", type=int, help="examples in a batch")
    parser.add_argument("--say-batch", action="store_true", help="give rematerialize batch_size=")
    parser.add_argument("--exact", action="store_true", help="graph rewrites off")
    parser.add_argument("--output", required=True)
    arguments = parser.parse_args()
    if arguments.exact:
        turn_off_fusions()
    program = PROGRAMS[arguments.program]
    batch = arguments.batch or program.batch
    options = {"batch_size": batch} if arguments.say_batch else {}
    figures = train(program, batch, arguments.budget, **options)
    here = f"{Path.cwd()}/"  # messages name files
    write_whole(arguments.output, json.dumps(figures, indent=1).replace(here, ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
