"""Without a number: what the device can hold, and what fits it runs unchanged."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.devices import cpu
from checkmate_tf.devices.cpu import Cpu
from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.elsewhere import another_device
from checkmate_tf.planning.device_budget import for_device
from checkmate_tf.planning.request import parse_request
from profiles.devices import default_device
from solvers import BudgetError
from tests.messages import raises
from tests.processes import printed
from tests.steps import loss_and_gradient

MIB = 1 << 20
on_cpu = pytest.mark.skipif(not default_device().startswith("CPU"), reason="the host's memory")

TRAINED = """
import hashlib
import tensorflow as tf
import checkmate_tf
w = tf.Variable(tf.eye(512) * 0.9)
def step(x):
    with tf.GradientTape() as tape:
        for _ in range(24):
            x = tf.tanh(x @ w)
        loss = tf.reduce_sum(x)
    gradient = tape.gradient(loss, w)
    w.assign_sub(1e-4 * gradient)
    return loss
ours = checkmate_tf.rematerialize(step, time_limit=5, verbose=0) if input() == "ours" else None
run = ours or tf.function(step)
x = tf.fill((2048, 512), 0.5)
try:
    for _ in range(3):
        run(x)
    recomputed = len(ours.plan.schedule) - len(ours.plan.graph) if ours else 0
    print(hashlib.sha256(w.numpy().tobytes()).hexdigest(), recomputed)
except tf.errors.ResourceExhaustedError:
    print("exhausted")
"""
"""Each of 24 activations takes 4 MiB, the step 110 to 130."""


def trained(which: str, limit: int | None) -> list[str]:
    """A digest of the weights after three steps, and how many nodes were recomputed."""
    settings = {} if limit is None else {"TF_CPU_BFC_MEM_LIMIT_IN_MB": str(limit)}
    # An allocation that fails ends some kernels of oneDNN's in a fault.
    return printed(TRAINED, which, TF_ENABLE_ONEDNN_OPTS="0", **settings).split()


@on_cpu
def test_what_does_not_fit_trains_to_the_same_bits():
    bits, _ = trained("plain", None)
    assert trained("plain", 70) == ["exhausted"]
    ours, recomputed = trained("ours", 70)
    assert ours == bits
    assert int(recomputed) > 0


@on_cpu
@pytest.mark.parametrize("limit", [None, 200])
def test_nothing_is_recomputed_where_the_step_fits(limit):
    """Whether that is clear, or a trial run has to show it."""
    assert trained("ours", limit) == trained("plain", limit)


def test_a_step_that_fits_runs_as_it_is():
    x = tf.random.normal((64, 64), seed=1)
    ours = checkmate_tf.rematerialize(loss_and_gradient, verbose=0)
    for one, other in zip(ours(x), tf.function(loss_and_gradient)(x), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [*ours.plan.schedule.steps] == [*range(len(ours.plan.graph))]
    assert ours.plan.measured_peak is None  # it fits by far: nothing ran for trial
    assert ours.plan.budget_from


@on_cpu
def test_what_a_cpu_can_hold(tmp_path, monkeypatch):
    memory = tmp_path / "meminfo"
    memory.write_text("MemTotal: 9000 kB\nMemAvailable: 1000 kB\n")
    monkeypatch.setattr(cpu, "_MEMORY", memory)
    monkeypatch.setattr(cpu, "_CONTAINER_LIMIT", tmp_path / "none")
    monkeypatch.setattr(Cpu, "held", lambda self: 5000)
    monkeypatch.delenv("TF_CPU_BFC_MEM_LIMIT_IN_MB", raising=False)
    assert current_device().room().bytes == 5000 + 1000 * 1024 * 9 // 10
    monkeypatch.setenv("TF_CPU_BFC_MEM_LIMIT_IN_MB", "200")  # more than there is
    assert current_device().room().bytes == 5000 + 1000 * 1024 * 9 // 10
    memory.write_text("MemAvailable: 900000 kB\n")
    assert current_device().room().bytes == 200 * MIB
    memory.unlink()
    assert current_device().room().bytes == 200 * MIB
    monkeypatch.delenv("TF_CPU_BFC_MEM_LIMIT_IN_MB")
    assert current_device().room() is None


def test_a_device_that_is_not_here_needs_a_number():
    request = parse_request(None, "auto", None, "roofline", 60, "free", True)
    with raises(BudgetError, "budget-of-a-device"):
        for_device(request, another_device())
