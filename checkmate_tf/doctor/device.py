"""The device that steps run on, and what counts its memory."""

from __future__ import annotations

import os
from pathlib import Path

import keras
import tensorflow as tf

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.device import Device
from checkmate_tf.doctor.finding import Finding
from profiles.devices import usable_cores
from profiles.tensorflow_internals import one_dnn_is_on
from solvers import format_bytes

_DRIVER = Path("/proc/driver/nvidia/version")
"""There where the driver of a GPU runs."""


def device() -> Finding:
    """Devices, cores, oneDNN, and the allocator."""
    here, others = current_device(), tf.config.list_logical_devices()
    limit = here.limit()
    facts = (
        ("device", f"{here.name}: {here.full_name}"),
        ("TensorFlow sees", ", ".join(each.name.rpartition("device:")[2] for each in others)),
        ("cores", f"{usable_cores()} of {os.cpu_count()}"),
        ("oneDNN", "on" if one_dnn_is_on() else "off"),
        ("memory counted by", here.counted_by() or "nothing"),
        *([("allocator limit", format_bytes(limit))] if limit is not None else []),
        ("Keras backend", keras.backend.backend()),
        ("Keras compiles", "by XLA" if keras_compiles() else "without XLA, unless asked to"),
    )
    if keras.backend.backend() != "tensorflow":
        return Finding(
            False,
            f"Keras computes with {keras.backend.backend()}: set KERAS_BACKEND=tensorflow before "
            "Keras is imported",
            facts,
        )
    return Finding(True, "; ".join(["works", *_advice(here)]), facts)


def keras_compiles() -> bool:
    """Whether a model is compiled by XLA here where `compile` isn't told, as on a GPU."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return bool(getattr(model, "jit_compile", False))


def _advice(here: Device) -> list[str]:
    advice = []
    if not here.counted_by():
        advice.append(
            "but nothing counts the device's memory, so that plans rest on their forecast: set "
            "TF_CPU_ALLOCATOR_USE_BFC=true before TensorFlow is imported"
        )
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    if here.is_host and _DRIVER.exists() and not hidden:
        advice.append(
            "but a GPU's driver runs here, and TensorFlow sees no GPU: pip install "
            "'checkmate_tf[gpu]'"
        )
    return advice
