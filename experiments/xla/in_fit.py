"""Keras' own path on a GPU, where XLA is the default: compile, rematerialize, fit.

    python -m experiments.xla.in_fit                      # every model, in fresh processes
    python -m experiments.xla.in_fit --models DenseNet121

Each model is trained three times: as it is, within a budget for the first time, and again in a
process that finds the plan kept. Peaks are the allocator's, of every step; seconds are those until
the first step is over. On a CPU XLA is asked for, and takes its own time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from checkmate_tf.workloads.models import gpt, unet
from solvers.graph.files import read_json, write_whole

STARTS = ("plain", "first", "again")
"""Each in a process of its own."""


def _application(name: str, side: int) -> Any:
    import keras

    made = getattr(keras.applications, name)
    return made(weights=None, input_shape=(side, side, 3), classes=1000)


def vit(side: int, blocks: int = 12, width: int = 384, heads: int = 6) -> Any:
    """A vision transformer on patches of 16 × 16 (Dosovitskiy et al., 2021: ViT-S)."""
    import keras
    from keras import layers

    inputs = keras.Input((side, side, 3))
    count = (side // 16) ** 2
    x = layers.Reshape((count, width))(layers.Conv2D(width, 16, strides=16)(inputs))
    x = x + layers.Embedding(count, width)(keras.ops.arange(count))
    for _ in range(blocks):
        y = layers.LayerNormalization()(x)
        y = layers.MultiHeadAttention(heads, width // heads)(y, y)
        x = x + layers.Dropout(0.1)(y)
        y = layers.Dense(4 * width, activation="gelu")(layers.LayerNormalization()(x))
        x = x + layers.Dropout(0.1)(layers.Dense(width)(y))
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    return keras.Model(inputs, layers.Dense(1000, activation="softmax")(x), name="vit")


@dataclass(frozen=True)
class Model:
    """A model at a size that people train, and the share that it is to train within.

    Attributes:
        build: makes it for an image side, or a length of text.
        batch, side: of its data.
        share: of what the compiled plain step adds.
        kind: of its data: "images", "pixels" or "text".
    """

    build: Callable[[int], Any]
    batch: int
    side: int
    share: float = 0.5
    kind: str = "images"


MODELS = {
    "U-Net": Model(unet, 64, 256, kind="pixels"),
    "Xception": Model(partial(_application, "Xception"), 32, 299),
    "ResNet50": Model(partial(_application, "ResNet50"), 64, 224),
    "InceptionV3": Model(partial(_application, "InceptionV3"), 32, 299),
    "EfficientNetB0": Model(partial(_application, "EfficientNetB0"), 64, 224),
    "DenseNet121": Model(partial(_application, "DenseNet121"), 64, 224),
    "ViT": Model(vit, 64, 224),
    "ConvNeXtTiny": Model(partial(_application, "ConvNeXtTiny"), 32, 224),
    "GPT": Model(
        partial(gpt, words=8192, blocks=12, width=768, heads=12), 16, 512, 0.4, kind="text"
    ),
}


def trained(model: Model, start: str) -> dict[str, Any]:
    """Train a model for two epochs of two batches, and say what it took."""
    import keras
    import numpy as np
    import tensorflow as tf

    import checkmate_tf
    from profiles.devices import default_device, device_name

    device = default_device()
    keras.utils.set_random_seed(0)
    made = model.build(model.side)
    is_text = model.kind == "text"
    optimizer = keras.optimizers.Adam(1e-4) if is_text else keras.optimizers.SGD(0.01, 0.9)
    asked = {} if device.startswith("GPU") else {"jit_compile": True}
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=is_text)
    made.compile(optimizer, loss, **asked)
    numbers = np.random.default_rng(0)
    count, side = 2 * model.batch, model.side
    size = (count, side) if is_text else (count, side, side, 3)
    x: Any = numbers.integers(0, 8192, size) if is_text else numbers.random(size, np.float32)
    y = numbers.integers(0, 10, size[: {"images": 1, "pixels": 3, "text": 2}[model.kind]])
    peaks: list[int] = []
    ends: list[float] = []

    class Peaks(keras.callbacks.Callback):  # type: ignore[misc]
        """Notes what each step held at most, and when it was over."""

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            tf.config.experimental.reset_memory_stats(device)

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            peaks.append(tf.config.experimental.get_memory_info(device)["peak"])
            ends.append(time.perf_counter())

    if start != "plain":
        checkmate_tf.rematerialize(made, budget=model.share, verbose=2)
    begun = time.perf_counter()
    made.fit(x, y, model.batch, epochs=2, verbose=0, shuffle=False, callbacks=[Peaks()])
    found: dict[str, Any] = {
        "device": device_name(device),
        "xla": bool(made.jit_compile),
        "peak": max(peaks),
        "seconds": ends[0] - begun,
    }
    if start != "plain":
        plan = made.train_step.plan
        found |= {
            "budget": plan.budget,
            "compiled": plan.compiled_peak,
            "plain": plan.compiled_baseline_peak,
            "plans": plan.compilations,
            "overhead": plan.overhead,
            "phases": dict(plan.seconds),
        }
    return found


def main() -> None:
    """Train the models, and print the table after each."""
    description = __doc__.splitlines()[0] if __doc__ else ""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.xla.in_fit", description=description
    )
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--output", default="results/xla_in_fit.json")
    parser.add_argument("--one", nargs=3, help="a model, a start and a file, in this process")
    arguments = parser.parse_args()
    if arguments.one:
        name, start, file = arguments.one
        write_whole(file, json.dumps(trained(MODELS[name], start)))
        return
    output = Path(arguments.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    done: dict[str, Any] = read_json(output) if output.exists() else {}
    for name in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            done[name] = {start: _in_fresh_process(name, start, folder) for start in STARTS}
        write_whole(output, json.dumps(done, indent=1))
        Console().print(as_table(done))


def _in_fresh_process(name: str, start: str, folder: str) -> dict[str, Any]:
    file = f"{folder}/{start}.json"
    command = [sys.executable, "-m", "experiments.xla.in_fit", "--one", name, start, file]
    environment = {
        "TF_CPP_MIN_LOG_LEVEL": "2",
        **os.environ,
        "CHECKMATE_TF_CACHE": folder,
        "CHECKMATE_TF_PLANS": f"{folder}/plans",
    }
    subprocess.run(command, env=environment, check=True)
    found: dict[str, Any] = read_json(file)
    return found


def as_table(done: dict[str, Any]) -> Table:
    """One line for each model; sizes in MB."""
    columns = (
        "share\n%", "plain\nMB", "budget\nMB", "compiled\nMB", "peak\nMB", "of the\nbudget",
        "extra\n%", "plain\ns", "first\ns", "again\ns", "plans",
    )  # fmt: skip
    table = Table("model", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for name, found in done.items():
        plain, first, again = (found[start] for start in STARTS)
        compiled = first["compiled"]
        table.add_row(
            name if first["xla"] else f"{name}, without XLA",
            f"{100 * MODELS[name].share:.0f}",
            f"{(first['plain'] or plain['peak']) / 1e6:.0f}",
            f"{first['budget'] / 1e6:.0f}",
            "–" if compiled is None else f"{compiled / 1e6:.0f}",
            f"{first['peak'] / 1e6:.0f}",
            f"{first['peak'] / first['budget']:.3f}",
            f"{100 * first['overhead']:.1f}",
            *(f"{each['seconds']:.0f}" for each in (plain, first, again)),
            str(first["plans"]),
        )
    return table


if __name__ == "__main__":
    main()
