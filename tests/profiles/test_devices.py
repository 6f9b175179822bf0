from __future__ import annotations

import os
import subprocess
import sys

import pytest
import tensorflow as tf

from profiles.devices import device_name
from solvers import CheckmateError
from tests.messages import raises

_PRINT_NAME = "from profiles.devices import device_name; print(device_name())"


def test_a_processor_is_named_with_its_cores_and_kernels() -> None:
    name = device_name("CPU:0")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert f", {cores} core" in name
    assert name.endswith("oneDNN")


@pytest.mark.slow
def test_with_and_without_one_dnn_are_two_devices() -> None:
    names = {
        subprocess.run(
            [sys.executable, "-c", _PRINT_NAME],
            env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": on},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for on in "01"
    }
    without = [name for name in names if "without oneDNN" in name]
    assert len(without) == 1


@pytest.mark.parametrize("device", ["GPU:77", "CPU:7", "cpu"])
def test_no_other_device_is_named_in_its_place(device: str) -> None:
    with raises(CheckmateError, "device-unknown", f"{device!r}", "CPU:0"):
        device_name(device)


@pytest.mark.skipif(not tf.config.list_logical_devices("GPU"), reason="no GPU on this machine")
def test_a_gpu_is_named_by_its_model() -> None:
    assert device_name("GPU:0") not in ("GPU", "")
