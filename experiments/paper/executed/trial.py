"""One training in a process of its own, plain or in less memory: peaks, times, what was held when.

python -m experiments.paper.executed.trial '{"network": "tiny", ...}' figures.json
"""

from __future__ import annotations

import functools
import hashlib
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from checkmate_tf.workloads.trial import EXHAUSTED, TOO_SMALL, trial_environment, write_figures
from experiments.paper.executed.memory_curve import Curve, memory_curve, thinned
from solvers.graph.files import read_json

OURS = "ours"
"""The way of `checkmate_tf.rematerialize`; the other ways are those of `alternatives`."""

_MOST_ROUNDS = 3
"""How many times as many steps are made where ours plans again in the middle."""

_RECORDINGS, _INTERVALS = 5, 400
"""Runs of which a curve of memory over time is kept, and its intervals."""


@dataclass(frozen=True)
class Trial:
    """What is trained, and how.

    Attributes:
        network: a name in `networks.TRAINED`.
        batch, side: of its data.
        way: `OURS`, or a name in `alternatives.ALTERNATIVES`.
        budget: of `OURS`: bytes, or "min".
        steps: whose peaks are measured.
        turns: steps that are timed beside as many plain ones, in turn.
        exact: graph rewrites off, so that bits can be compared.
        batches: of data, of which every step gets the next.
        curve: also record what is held while a step runs.
        limit: bytes that the allocator may hold, or None.
        one_dnn: whether TensorFlow's oneDNN kernels are on.
        time_limit: seconds of the solver.
    """

    network: str
    batch: int
    side: int
    way: str = "plain"
    budget: int | str | None = None
    steps: int = 3
    turns: int = 0
    exact: bool = False
    batches: int = 4
    curve: bool = False
    limit: int | None = None
    one_dnn: bool = True
    time_limit: float = 15.0


def run_trial(trial: Trial) -> dict[str, Any]:
    """What the trial measured, from a fresh process.

    `ended` says how it went: "trained", "out of memory", "budget too small", or the error. What is
    there with "trained": `resident` (bytes held before the first step), `seconds` and `losses` of
    the first steps, their `peaks` since the last one at which ours planned again, `warnings`,
    `digests` of the variables after them, `compared_seconds`, `curve`, `plan`.

    Raises:
        RuntimeError: the process was ended from outside.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "figures.json"
        command = [sys.executable, "-m", "experiments.paper.executed.trial"]
        ended = subprocess.run(
            [*command, json.dumps(asdict(trial)), str(output)],
            env=trial_environment(trial.limit, trial.one_dnn),
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode == 0:
            return {"ended": "trained", **read_json(output)}
        if ended.returncode == EXHAUSTED:
            return {"ended": "out of memory", "why": ended.stderr[-600:]}
        if ended.returncode == TOO_SMALL:
            return {"ended": "budget too small", "why": ended.stderr[-600:]}
        if ended.returncode == -9:
            raise RuntimeError(f"{trial} was ended from outside; is there enough memory?")
        return {"ended": "error", "why": ended.stderr[-3000:]}


def main() -> int:
    """Train as the first argument says, and write the figures to the second."""
    trial = Trial(**json.loads(sys.argv[1]))
    return write_figures(lambda: train(trial), sys.argv[2])


def train(trial: Trial) -> dict[str, Any]:
    """Train and measure in this process; see `run_trial`."""
    from checkmate_tf.devices.current import current_device
    from checkmate_tf.devices.measure import held_bytes
    from checkmate_tf.workloads.data import batches_of
    from checkmate_tf.workloads.trial import (
        alternate,
        describe_plan,
        measured_step,
        turn_off_fusions,
    )
    from experiments.paper.executed.networks import TRAINED

    if trial.limit is not None:
        # As a GPU's allocator does. The process has taken a little before its first tensor.
        current_device().reserve(trial.limit // 2**20 * 2**20 - 4 * 2**20)
    if trial.exact:
        turn_off_fusions()
    workload = TRAINED[trial.network]
    model, step = made(trial)
    batches = batches_of(workload, trial.batches, trial.batch, trial.side)
    resident = held_bytes()
    start, ready = time.perf_counter(), 0.0
    losses, peaks, seconds = [], [], []
    number, settled = 0, 0
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        while settled < trial.steps and number < _MOST_ROUNDS * trial.steps:
            known = len(told)
            model.reset_metrics()  # else its loss is the mean of all steps so far
            before = time.perf_counter()
            loss, peak = measured_step(step, batches[number % len(batches)])
            seconds.append(time.perf_counter() - before)
            losses.append(loss)
            peaks.append(peak)
            ready = ready or time.perf_counter() - start
            number += 1
            # After a step over the budget ours plans again, in the same call, and warns.
            settled = 0 if len(told) > known and number > 1 else settled + 1
    figures: dict[str, Any] = {
        "resident": resident, "peaks": peaks[-max(1, settled) :], "seconds": seconds,
        "losses": losses, "ready": ready, "digests": digests(model),
        "warnings": [str(each.message) for each in told if issubclass(each.category, UserWarning)],
    }  # fmt: skip
    plan = getattr(step, "plan", None)
    if plan is not None:
        figures["plan"] = describe_plan(plan)
        figures["plan"]["share_of_forward"] = forward_share(plan.graph)
    if trial.curve:
        figures["curve"] = recorded(functools.partial(step, batches[0]))
    if trial.turns:
        _, other = made(Trial(trial.network, trial.batch, trial.side))
        steps = {"plain": other, trial.way: step}
        figures["compared_seconds"] = alternate(steps, batches, trial.turns)
    return figures


def made(trial: Trial) -> tuple[Any, Callable[[Any], Any]]:
    """The model and its step; weights and generators are the same for every way."""
    import keras

    import checkmate_tf
    from experiments.paper.executed.alternatives import ALTERNATIVES, plain
    from experiments.paper.executed.networks import TRAINED

    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    workload = TRAINED[trial.network]
    if trial.way != OURS:
        return ALTERNATIVES[trial.way](workload, trial.side)
    model, _ = plain(workload, trial.side)
    if trial.budget is None:
        raise ValueError("the rematerialized step needs a budget")
    step = checkmate_tf.rematerialize(
        model.train_step, budget=trial.budget, time_limit=trial.time_limit
    )
    return model, step


def recorded(run: Callable[[], Any]) -> Curve:
    """What is held while a step runs: of several runs the quickest, as others may be at work."""
    curves = [memory_curve(run) for _ in range(_RECORDINGS)]
    return thinned(min(curves, key=lambda curve: curve[-1][0]), _INTERVALS)


def digests(model: Any) -> dict[str, str]:
    """Of all bits that were trained, and of all others, such as moving averages."""
    import numpy as np

    def digest(variables: list[Any]) -> str:
        told = hashlib.sha256()
        for each in variables:
            told.update(np.asarray(each).tobytes())
        return told.hexdigest()

    return {
        "trained": digest(model.trainable_weights),
        "others": digest(model.non_trainable_weights),
    }


def forward_share(graph: Any) -> float:
    """The forward pass's share of the cost of a step."""
    forward = sum(each.cost for each in graph.nodes if not each.backward)
    return float(forward / graph.one_pass_cost)


if __name__ == "__main__":
    sys.exit(main())
