"""Names of devices, which tell whether stored figures are of this one."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

import tensorflow as tf

from profiles.tensorflow_internals import device_asked_for, one_dnn_is_on
from solvers.errors import CheckmateError


def default_device() -> str:
    """The device that TensorFlow computes on: "GPU:0" where there is one, else "CPU:0".

    Under `tf.device` it is the one that was asked for, if it is there.

    Example:
        >>> import tensorflow as tf
        >>> with tf.device("CPU"):
        ...     default_device()
        'CPU:0'
    """
    asked = device_asked_for().rpartition("device:")[2]
    if asked and asked in _names_of_devices():
        return asked
    return "GPU:0" if tf.config.list_logical_devices("GPU") else "CPU:0"


def check_device(device: str) -> None:
    """See whether TensorFlow has the device "CPU:0", "GPU:0", …; it would take another one.

    Raises:
        CheckmateError: it is not there.
    """
    there = _names_of_devices()
    if device not in there:
        raise CheckmateError(
            "device-unknown", f"there is no device {device!r}; TensorFlow sees {', '.join(there)}"
        )


def _names_of_devices() -> list[str]:
    return [each.name.rpartition("device:")[2] for each in tf.config.list_logical_devices()]


def device_name(device: str = "CPU:0") -> str:
    """The full name of a device: its model, and what else decides how fast kernels run on it.

    Raises:
        CheckmateError: TensorFlow does not see such a device.

    Example:
        >>> "core" in device_name("CPU:0")
        True
    """
    check_device(device)
    kind, _, number = device.partition(":")
    if kind == "CPU":
        cores = usable_cores()
        # The same core has other kernels with oneDNN than without it.
        one_dnn = "oneDNN" if one_dnn_is_on() else "without oneDNN"
        return f"{_processor()}, {cores} core{'s' * (cores > 1)}, {one_dnn}"
    physical = tf.config.list_physical_devices(kind)[int(number)]
    details = tf.config.experimental.get_device_details(physical)
    return str(details.get("device_name", kind))


def usable_cores() -> int:
    """Cores that this process may run on, where the system says so."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    """The processor's model as Linux knows it, else as Python does."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    found = {
        name: matched.group(1).strip()
        for name in ("model name", "cpu family", "model")
        if (matched := re.search(rf"^{name}\s*:(.*)$", text, re.MULTILINE))
    }
    if "model name" not in found:
        return platform.machine()
    # Clouds hide the model behind "AMD EPYC"; the family and model number tell generations apart.
    numbers = f"family {found.get('cpu family', '?')}, model {found.get('model', '?')}"
    return f"{found['model name']} ({numbers})"
