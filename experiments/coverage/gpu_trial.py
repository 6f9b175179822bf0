"""Kinds, trained on a GPU in this process: a line of JSON for the plain step, and one for ours.

    python -m experiments.coverage.gpu_trial "grouped convolution"

Batches lie on the host, as those of a `tf.data` set do. A training that takes too long ends the
process.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

if __name__ == "__main__":  # before TensorFlow starts
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")

import keras
import tensorflow as tf

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import run_measured
from experiments.coverage.kind import LARGE, Called, Decorate, Kind
from experiments.coverage.kinds import KINDS
from experiments.coverage.on_a_gpu import SECONDS, Trained
from experiments.coverage.planned import NAMED, SHARE, told, within
from experiments.coverage.trial import plainly
from profiles.tensorflow_internals import graphs_that_run

DEVICE, HOST = "GPU:0", "CPU:0"

SIZE = replace(LARGE, depth=3)


def train_plainly(kind: Kind) -> Trained:
    """Train the plain step."""
    return _timed(lambda: _trained(kind, plainly))


def train_by_a_plan(kind: Kind, **options: Any) -> Trained:
    """Train by a plan, with these options of `rematerialize`."""

    def train() -> Trained:
        planned = within(
            [SHARE, NAMED, "min"], lambda decorate: _trained(kind, decorate), **options
        )
        return replace(
            planned.result,
            asked=planned.asked,
            budget=0 if planned.plan is None else planned.plan.budget,
            messages=planned.messages,
            codes=planned.codes,
        )

    return _timed(train)


def _timed(train: Any) -> Trained:
    start = time.perf_counter()
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        trained: Trained = train()
    except Exception as error:
        trained = Trained(error=told(error))
    finally:
        faulthandler.cancel_dump_traceback_later()
    gc.collect()
    return replace(trained, seconds=time.perf_counter() - start)


def _trained(kind: Kind, decorate: Decorate) -> Trained:
    keras.utils.set_random_seed(0)
    training = kind.make(SIZE)
    if isinstance(training, Called):
        training = replace(training, data=_on_the_host(training.data))
    run = training.prepared(decorate)
    with graphs_that_run() as functions:
        run()
    _, peak = run_measured(run, device=DEVICE)
    step = _step_of(functions)
    return Trained(places=_places(step), copies=_copies(step), peak=peak)


def _step_of(functions: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """The last of the large ones: before it ran what was tried, and much that is small."""
    sizes = [sum(len(each.node) for each in graphs) for graphs in functions]
    large = [place for place, size in enumerate(sizes) if 2 * size >= max(sizes)]
    return functions[large[-1]]


def _places(graphs: Sequence[Any]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for graph in graphs:
        for node in graph.node:
            found[node.op][_device(node.device)] += 1
    return {kind: dict(each) for kind, each in found.items()}


def _copies(graphs: Sequence[Any]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {DEVICE: Counter(), HOST: Counter()}
    for graph in graphs:
        kinds = {node.name: node.op for node in graph.node}
        for node in graph.node:
            if node.op in ("_Send", "_HostSend"):
                source, target = (
                    _device(node.attr[each].s.decode()) for each in ("send_device", "recv_device")
                )
                if source != target:
                    found[target][kinds[node.input[0].partition(":")[0]]] += 1
    return {device: dict(each) for device, each in found.items()}


def _device(name: str) -> str:
    return name.partition("/device:")[2]


def _on_the_host(data: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    with tf.device(HOST):
        return [
            tf.nest.map_structure(
                lambda each: tf.identity(each) if isinstance(each, tf.Tensor) else each,
                arguments,
                expand_composites=True,
            )
            for arguments in data
        ]


def main() -> int:
    """Train kinds, and print their lines."""
    parser = argparse.ArgumentParser(description="kinds of train steps on a GPU")
    parser.add_argument("kinds", nargs="+", choices=KINDS, metavar="KIND")
    parser.add_argument("--time-limit", type=float, default=0.5, help="of the solver, in seconds")
    arguments = parser.parse_args()
    current_device().reserve(1 << 32)
    # What is imported stays: each of many collections would go through all of it.
    gc.collect()
    gc.freeze()
    for name in arguments.kinds:
        trained = train_plainly(KINDS[name])
        print(json.dumps(asdict(trained)), flush=True)
        if not trained.error:
            trained = train_by_a_plan(KINDS[name], time_limit=arguments.time_limit)
            print(json.dumps(asdict(trained)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
