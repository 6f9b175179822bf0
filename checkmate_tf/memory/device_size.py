"""How much memory a device has in all, where something tells it."""

from __future__ import annotations

import ctypes
import re
from contextlib import suppress
from pathlib import Path

import tensorflow as tf

from checkmate_tf.memory.measure import allocator_limit
from profiles.devices import default_device

_HOST = Path("/proc/meminfo")

_CONTAINER = Path("/sys/fs/cgroup/memory.max")


def device_bytes() -> int | None:
    """Bytes that the device which TensorFlow computes on has in all; None where nothing tells.

    Of a CPU the least of what its allocator, the container and the host may have.
    """
    kind = default_device().partition(":")[0]
    if kind == "GPU":
        return _gpu_bytes()
    return _cpu_bytes() if kind == "CPU" else None


def _cpu_bytes() -> int | None:
    limit = allocator_limit()
    known = [] if limit is None else [limit]
    with suppress(OSError):
        found = re.search(r"^MemTotal:\s*(\d+) kB", _HOST.read_text(), re.MULTILINE)
        known += [int(found[1]) << 10] if found else []
    with suppress(OSError, ValueError):  # no container, or one without a limit ("max")
        known.append(int(_CONTAINER.read_text()))
    return min(known, default=None)


def _gpu_bytes() -> int | None:
    """Of the first GPU that TensorFlow may use: the limit that it was given, or all."""
    gpu = tf.config.get_visible_devices("GPU")[0]
    parts = tf.config.get_logical_device_configuration(gpu)
    if parts and parts[0].memory_limit is not None:
        return int(parts[0].memory_limit) << 20
    return _cuda_bytes(int(gpu.name.rpartition(":")[2]))


def _cuda_bytes(number: int) -> int | None:
    """Of the GPU with this number by CUDA's count, as its driver says; None where there is none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, size = ctypes.c_int(), ctypes.c_size_t()
    failed = (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(device), number)
        or driver.cuDeviceTotalMem_v2(ctypes.byref(size), device)
    )
    return None if failed else size.value
