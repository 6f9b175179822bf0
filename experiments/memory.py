"""What `memory` tells of a step before training, beside what the allocator holds in `fit`.

    python -m experiments.memory            # seven models, XLA on and off; half an hour on a CPU
    python -m experiments.memory --quick    # a small U-Net

Every row is a fresh process. On a CPU oneDNN is on and off; on a GPU, or the stand-in for one that
`python -m tests.gpu` builds, batches and images are of sizes that people train at.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from checkmate_tf.workloads.models import ALL_WORKLOADS

STEPS = 6
ON_A_GPU = {
    "MobileNetV2": (64, 224), "VGG16": (32, 224), "ResNet50": (64, 224), "U-Net": (64, 256),
    "DenseNet121": (32, 224), "EfficientNetB0": (64, 224), "GPT": (64, 256),
}  # fmt: skip
"""Batch and side."""

Row = dict[str, Any]


def main(command_line: Sequence[str] | None = None) -> None:
    """Measure, and print the table; with `--of` it is one row, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", nargs="+", default=list(ALL_WORKLOADS), choices=ALL_WORKLOADS)
    parser.add_argument("--quick", action="store_true", help="a small U-Net, without XLA")
    parser.add_argument("--gpu", action="store_true", help="sizes for a GPU")
    parser.add_argument("--of", nargs=4, metavar=("MODEL", "XLA", "BATCH", "SIDE"))
    arguments = parser.parse_args(command_line)
    if arguments.of:
        name, xla, batch, side = arguments.of
        print(json.dumps(measured(name, xla == "on", int(batch), int(side))), flush=True)
        return
    runs = [*_runs(arguments)]
    console = Console(stderr=True)
    rows = []
    try:
        for run in track(runs, "training", console=console, transient=True):
            rows.append(_in_a_process(**run))
    except KeyboardInterrupt:
        console.print("Stopped; this is what was measured until then.")
    Console(width=80).print(as_table(rows))


def _runs(arguments: argparse.Namespace) -> Iterator[Row]:
    if arguments.quick:
        yield {"model": "U-Net", "xla": "off", "one_dnn": "on", "batch": 2, "side": 64}
        return
    for xla in ("off", "on"):
        for one_dnn in ("on",) if arguments.gpu else ("on", "off"):
            for name in arguments.models:
                workload = ALL_WORKLOADS[name]
                batch, side = workload.batch, workload.side
                if arguments.gpu:
                    batch, side = ON_A_GPU[name]
                yield {"model": name, "xla": xla, "one_dnn": one_dnn, "batch": batch, "side": side}


def _in_a_process(model: str, xla: str, one_dnn: str, batch: int, side: int) -> Row:
    environment = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_CPU_ALLOCATOR_USE_BFC": "true",
        "TF_ENABLE_ONEDNN_OPTS": "1" if one_dnn == "on" else "0",
    }
    command = [
        sys.executable,
        "-m",
        "experiments.memory",
        "--of",
        model,
        xla,
        str(batch),
        str(side),
    ]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    row = {"model": f"{model}, {batch}×{side}", "xla": xla, "one_dnn": one_dnn}
    if ended.returncode:
        return {**row, "failed": ended.stderr.strip().splitlines()[-1]}
    return {**row, **json.loads(ended.stdout.splitlines()[-1])}


def measured(name: str, xla: bool, batch: int, side: int) -> Row:
    """Bytes that are told, and that are held in the steps of `fit` after the first two.

    Without the data set: on a CPU its tensors lie in the same memory.
    """
    import keras
    import tensorflow as tf

    from checkmate_tf import memory
    from checkmate_tf.devices.measure import held_bytes
    from checkmate_tf.workloads.data import batches_of
    from checkmate_tf.workloads.models import compiled
    from profiles.devices import default_device

    device, workload = default_device(), ALL_WORKLOADS[name]
    model = compiled(workload, side)
    model.jit_compile = xla
    before = time.perf_counter()
    told = memory(model, batch, device_memory=())
    seconds = time.perf_counter() - before
    peaks = []

    class Peaks(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            tf.config.experimental.reset_memory_stats(device)

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            peaks.append(tf.config.experimental.get_memory_info(device)["peak"])

    model_alone = held_bytes(device) or 0
    with tf.device("CPU"):  # on a GPU, batches come from the host
        x, y = zip(*batches_of(workload, STEPS, batch, side, "float32"), strict=True)
        data = tf.data.Dataset.from_tensor_slices((tf.concat(x, 0), tf.concat(y, 0)))
    data_set = (held_bytes(device) or 0) - model_alone
    model.fit(data.batch(batch), verbose=0, callbacks=[Peaks()])
    held = max(peaks[2:]) - data_set
    return {"told": told.peak, "how": told.how, "held": held, "seconds": seconds}


def as_table(rows: Sequence[Row]) -> Table:
    """The rows, and the median of how far they are off."""
    table = Table("model", "XLA", "oneDNN", "told, MiB", "held, MiB", "told ÷ held", "told in")
    for row in rows:
        told = [row["model"], row["xla"], row["one_dnn"]]
        if "failed" in row:
            table.add_row(*told, row["failed"])
            continue
        sizes = (f"{row[each] / 2**20:.0f}" for each in ("told", "held"))
        ratio = row["told"] / row["held"]
        table.add_row(*told, *sizes, f"{ratio:.3f}", f"{row['seconds']:.0f} s")
    off = [abs(row["told"] / row["held"] - 1) for row in rows if "failed" not in row]
    if len(off) > 1:
        table.add_row("off by: median", "", "", "", "", f"{median(off):.3f}")
        table.add_row("at most", "", "", "", "", f"{max(off):.3f}")
    return table


if __name__ == "__main__":
    main()
