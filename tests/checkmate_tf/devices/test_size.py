"""What a device has in all, beside what the system says by other means; and budgets beyond it."""

from __future__ import annotations

import os

import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.devices import cpu
from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.device import _cuda_bytes
from profiles.devices import default_device
from tests.dense_steps import SIZE, loss_and_gradient, some_weights
from tests.messages import warns
from tests.processes import printed

on_cpu = pytest.mark.skipif(not default_device().startswith("CPU"), reason="the host's memory")


@on_cpu
def test_the_least_of_what_the_host_and_the_allocator_may_have(tmp_path, monkeypatch):
    host = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    container = tmp_path / "memory.max"
    monkeypatch.setattr(cpu, "_CONTAINER_LIMIT", container)
    monkeypatch.delenv("TF_CPU_BFC_MEM_LIMIT_IN_MB", raising=False)
    assert current_device().size() == host
    container.write_text("max\n")
    assert current_device().size() == host
    container.write_text(f"{300 << 20}\n")
    assert current_device().size() == 300 << 20
    monkeypatch.setenv("TF_CPU_BFC_MEM_LIMIT_IN_MB", "200")
    assert current_device().size() == 200 << 20


def test_without_a_driver_no_gpu_tells_its_size():
    if default_device().startswith("CPU"):
        assert _cuda_bytes(99) is None
    else:
        assert (
            current_device().size()
            > tf.config.experimental.get_memory_info(default_device())["current"]
        )


@on_cpu
def test_a_budget_of_more_than_the_device_has_is_said_once():
    options = {"solver": "linearized_greedy", "time_limit": 1, "trial_run": False, "verbose": 0}
    step = checkmate_tf.rematerialize(
        loss_and_gradient(some_weights(), 4), budget="500TiB", **options
    )
    with warns("budget-above-the-device", "500.00 TiB", "CPU:0") as caught:
        for batch in (64, 128):
            step(tf.ones((batch, SIZE)))
    assert len(caught) == 1


_AFTER_A_LARGE_BUFFER = """
import tensorflow as tf
from checkmate_tf.devices.current import current_device

beside = tf.raw_ops.Empty(shape=[11 << 20], dtype=tf.uint8)
current_device().reserve(1 << 30)
tf.raw_ops.Empty(shape=[20 << 20], dtype=tf.uint8)
print(tf.raw_ops.Empty(shape=[75 << 20], dtype=tf.uint8).shape[0] >> 20)
"""


def test_what_a_limit_leaves_is_had_in_one_piece():
    """Left alone, the allocator would take a region of 32 MiB for 20, and no buffer has two."""
    settings = {"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "100"}
    assert printed(_AFTER_A_LARGE_BUFFER, **settings).strip() == "75"
