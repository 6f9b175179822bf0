"""Steps that XLA compiles for a GPU, as it does Keras' by default, and those that it does not."""

from __future__ import annotations

import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.devices.current import current_device
from profiles.measure.compilation import compiled_memory
from tests.costs import sweep
from tests.gpu.steps import BATCH, dense, fit, nothing_is_said, peaks_of, rows

ROWS = 8 * BATCH
"""In a batch: an activation takes 256 MiB."""
ROOM = 128 << 20
"""Bytes more than the compiler says: so much larger a free piece TensorFlow's allocator gives away
whole, and others than ours have left such pieces."""


def planned_by_xla(plan):
    return plan is not None and plan.compiled_peak <= plan.budget < plan.compiled_baseline_peak


@pytest.mark.parametrize("jit_compile", sweep(["auto", True]))
def test_fit_with_xla(jit_compile):
    plain, model = dense(jit_compile), dense(jit_compile)
    assert plain.jit_compile
    plain_peak = min(fit(plain, *rows(2 * ROWS), ROWS).warm)
    checkmate_tf.rematerialize(model, budget=0.75, time_limit=2)
    with nothing_is_said():
        peaks = fit(model, *rows(2 * ROWS), ROWS).seen
    plan = model.train_step.plan
    assert model.jit_compile
    assert planned_by_xla(plan)
    assert max(peaks) <= plan.budget < plain_peak
    assert max(peaks) <= plan.compiled_peak + ROOM


def test_fit_without_xla():
    model = checkmate_tf.rematerialize(dense(False), budget=0.75, time_limit=2)
    with nothing_is_said():
        peaks = fit(model, *rows(2 * ROWS), ROWS).warm
    plan = model.train_step.plan
    assert not model.jit_compile
    assert plan.compiled_peak is None
    assert max(peaks) <= plan.budget < plan.measured_baseline_peak


@pytest.mark.parametrize("outside", [True, False])
def test_a_function_that_xla_compiles(outside):
    """Compiled as a whole, or a function of the user's own that calls the step."""
    w = [tf.Variable(tf.zeros((512, 512))) for _ in range(8)]

    def step(x):
        with tf.GradientTape() as tape:
            y = x
            for each in w:
                y = tf.tanh(y @ each)
            loss = tf.reduce_sum(y)
        for each, gradient in zip(w, tape.gradient(loss, w), strict=True):
            each.assign_sub(gradient)
        return loss

    x = tf.zeros((ROWS, 512))
    plain = min(peaks_of(tf.function(step, jit_compile=True), x))
    if outside:
        ours = checkmate_tf.rematerialize(step, budget=0.75, time_limit=2)
        function = tf.function(lambda x: ours(x), jit_compile=True)
    else:
        function = ours = checkmate_tf.rematerialize(
            tf.function(step, jit_compile=True), budget=0.75, time_limit=2
        )
    with nothing_is_said():
        peaks = peaks_of(function, x)
    assert planned_by_xla(ours.plan)
    assert max(peaks) <= ours.plan.budget < plain


def test_what_xla_itself_computes_again_is_told():
    """It does where a step would take more than the GPU has; not where it fits by far."""
    w = [tf.Variable(tf.zeros((512, 512))) for _ in range(12)]

    @tf.function(jit_compile=True)
    def step(x):
        with tf.GradientTape() as tape:
            y = x
            for each in w:
                y = tf.tanh(y @ each)
        return tape.gradient(y, w)

    def compiled(share):
        rows = int(share * current_device().size()) // (4 * 512 * len(w))
        spec = tf.TensorSpec((rows, 512))
        return compiled_memory(step.get_concrete_function(spec), [spec], "GPU:0")

    assert not compiled(0.2).is_recomputed
    assert compiled(2.0).is_recomputed
