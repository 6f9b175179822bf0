"""Real train steps as graphs, for solvers: five networks, forward, backward and optimizer.

    python -m experiments.train_steps FOLDER    # traces, extracts and saves them, a minute each

Costs are those of the roofline model. Nothing is trained.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from checkmate_tf.workloads.models import WORKLOADS, compiled, gpt
from solvers import ComputationGraph

GPT_BATCH, GPT_LENGTH, GPT_WORDS = 4, 256, 8000


def workload_step(name: str) -> ComputationGraph:
    """The train step of one of `checkmate_tf.workloads.models.WORKLOADS`."""
    import tensorflow as tf

    workload = WORKLOADS[name]
    shape = (workload.batch, workload.side, workload.side)
    labels = shape if workload.kind == "pixels" else shape[:1]
    return _extracted(
        f"{name} step",
        compiled(workload),
        tf.TensorSpec((*shape, 3), tf.float32),
        tf.TensorSpec(labels, tf.int32),
    )


def gpt_step() -> ComputationGraph:
    """The train step of a GPT of 12 blocks, with Adam."""
    import keras
    import tensorflow as tf

    model = gpt(GPT_LENGTH, GPT_WORDS, blocks=12, width=384, heads=6, dropout=0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    words = tf.TensorSpec((GPT_BATCH, GPT_LENGTH), tf.int32)
    return _extracted("GPT step", model, words, words)


def _extracted(name: str, model: Any, inputs: Any, labels: Any) -> ComputationGraph:
    import tensorflow as tf

    import checkmate_tf

    step = tf.function(lambda x, y: model.train_step((x, y)))
    return replace(checkmate_tf.extract(step.get_concrete_function(inputs, labels)), name=name)


STEPS: dict[str, Callable[[], ComputationGraph]] = {
    **{name: functools.partial(workload_step, name) for name in WORKLOADS},
    "GPT": gpt_step,
}


def save_steps(folder: Path) -> list[Path]:
    """Extract every step that `folder` does not hold yet; the files, one a step."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, extract in STEPS.items():
        path = folder / f"{name}_step.json"
        if not path.exists():
            extract().save(path)
        paths.append(path)
    return paths


def main() -> None:
    """Command line; see the module."""
    parser = argparse.ArgumentParser(description="extract real train steps")
    parser.add_argument("folder", type=Path)
    for path in save_steps(parser.parse_args().folder):
        print(path)


if __name__ == "__main__":
    main()
