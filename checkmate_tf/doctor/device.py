"""The device that steps run on, and what counts its memory."""

from __future__ import annotations

import os
from pathlib import Path

import keras
import tensorflow as tf

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import counts_small_buffers, held_bytes
from checkmate_tf.doctor.finding import Finding
from profiles.devices import default_device, device_name, usable_cores
from profiles.tensorflow_internals import one_dnn_is_on
from solvers import format_bytes

_DRIVER = Path("/proc/driver/nvidia/version")
"""There where the driver of a GPU runs."""


def device() -> Finding:
    """Devices, cores, oneDNN, and the allocator."""
    place = default_device()
    others = tf.config.list_logical_devices()
    limit = current_device().limit()
    facts = (
        ("device", f"{place}: {device_name(place)}"),
        ("TensorFlow sees", ", ".join(each.name.rpartition("device:")[2] for each in others)),
        ("cores", f"{usable_cores()} of {os.cpu_count()}"),
        ("oneDNN", "on" if one_dnn_is_on() else "off"),
        ("memory counted by", allocator_of(place) or "nothing"),
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
    return Finding(True, "; ".join(["works", *_advice(place)]), facts)


def keras_compiles() -> bool:
    """Whether a model is compiled by XLA here where `compile` isn't told, as on a GPU."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return bool(getattr(model, "jit_compile", False))


def allocator_of(place: str) -> str:
    """What counts the memory of a device; "" where nothing does.

    Example:
        >>> allocator_of("CPU:0").partition(",")[0] in (
        ...     "", "TensorFlow's BFC allocator", "oneDNN's allocator"
        ... )
        True
    """
    if held_bytes(place) is None:
        return ""
    if not place.startswith("CPU"):
        return os.environ.get("TF_GPU_ALLOCATOR") or "TensorFlow's BFC allocator"
    if not counts_small_buffers():
        return "oneDNN's allocator, but for buffers below 256 KiB"
    return "oneDNN's allocator" if one_dnn_is_on() else "TensorFlow's BFC allocator"


def _advice(place: str) -> list[str]:
    advice = []
    if not allocator_of(place):
        advice.append(
            "but nothing counts the device's memory, so that plans rest on their forecast: set "
            "TF_CPU_ALLOCATOR_USE_BFC=true before TensorFlow is imported"
        )
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    if place.startswith("CPU") and _DRIVER.exists() and not hidden:
        advice.append(
            "but a GPU's driver runs here, and TensorFlow sees no GPU: pip install "
            "'checkmate_tf[gpu]'"
        )
    return advice
