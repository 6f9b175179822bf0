"""One plan for all workers: the first worker makes it, and the others wait for it.

Workers meet in TensorFlow's coordination service, which MultiWorkerMirroredStrategy starts. The
first worker keeps it, so that the others see at once when that worker is gone.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import tensorflow as tf

from profiles.tensorflow_internals import (
    first_job,
    share_between_workers,
    shared_between_workers,
)
from solvers import BudgetError, CheckmateError, ComputationGraph

_NUMBER = itertools.count()
"""Of the plans that workers agree on; all workers plan the same steps in the same order."""

_ASK_AGAIN = 5.0
"""Seconds after which a waiting worker asks again, so that Ctrl-C reaches it."""


@dataclass(frozen=True)
class Worker:
    """One of several workers that run the same step.

    Attributes:
        name: as in "worker 1".
        is_first: it plans for all.
    """

    name: str
    is_first: bool


def this_worker(device: str) -> Worker | None:
    """The worker that `device` belongs to; None where there is one process only."""
    first, spec = first_job(), tf.DeviceSpec.from_string(device)
    if first is None or spec.job is None or spec.task is None:
        return None
    return Worker(f"{spec.job} {spec.task}", spec.job == first and spec.task == 0)


def agree(worker: Worker, graph: ComputationGraph, make: Callable[[], Any], patience: float) -> Any:
    """What `make` returns on the first worker, on all of them.

    Args:
        worker: this one.
        graph: of the step; a worker that has traced another one is an error.
        make: makes a plan that JSON can hold.
        patience: seconds that the others wait.

    Raises:
        BudgetError: `make` raised it on the first worker.
        CheckmateError: the first worker failed or is gone, or planned another step.
    """
    key = f"checkmate_tf/plan/{next(_NUMBER)}"
    if not worker.is_first:
        return _wait_for(key, worker, graph, patience)
    try:
        made = make()
    except BaseException as error:
        _share(key, _described(error))
        raise
    _share(key, {"graph": _digest(graph), "plan": made})
    return made


def _share(key: str, content: dict[str, Any]) -> None:
    share_between_workers(key, json.dumps(content))


def _described(error: BaseException) -> dict[str, Any]:
    """An error for the other workers."""
    if isinstance(error, BudgetError):
        return {"code": error.code, "budget_error": str(error), "least": error.least}
    code = error.code if isinstance(error, CheckmateError) else "first-worker-failed"
    return {"code": code, "error": f"{type(error).__name__}: {error}"}


def _wait_for(key: str, worker: Worker, graph: ComputationGraph, patience: float) -> Any:
    end = time.monotonic() + patience
    text = None
    while text is None:
        try:
            text = shared_between_workers(key, _ASK_AGAIN)
        except tf.errors.OpError as error:
            raise CheckmateError(
                "first-worker-gone",
                f"{worker.name} waits for the plan of the first worker, which can't be reached any "
                f"more: {error.message.splitlines()[0]}. Look at its output, and start all workers "
                "again",
            ) from error
        if text is None and time.monotonic() > end:
            raise CheckmateError(
                "first-worker-silent",
                f"{worker.name} has waited {patience:.0f} s for the plan of the first worker, "
                "which has not planned this step: all of them must call the same steps in turn",
            )
    content = json.loads(text)
    if "budget_error" in content:
        raise BudgetError(
            content["code"], f"on the first worker: {content['budget_error']}", content["least"]
        )
    if "error" in content:
        raise CheckmateError(
            content["code"], f"the first worker could not plan the step: {content['error']}"
        )
    if content["graph"] != _digest(graph):
        raise CheckmateError(
            "workers-differ",
            f"{worker.name} has traced another step than the first worker: give all workers the "
            "same program, batch size and version of TensorFlow",
        )
    return content["plan"]


def _digest(graph: ComputationGraph) -> str:
    """Equal for equal steps, whatever they cost on a worker, and however their parts are named."""
    nodes = [
        {**asdict(node), "name": "", "cost": 0.0, "workspace": 0, "backward": False}
        for node in graph.nodes
    ]
    return hashlib.sha256(json.dumps(nodes, sort_keys=True).encode()).hexdigest()
