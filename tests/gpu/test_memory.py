"""What a step will hold, told before training, beside what the GPU's allocator holds then."""

from __future__ import annotations

import gc

import pytest
import tensorflow as tf

from checkmate_tf import memory
from tests.gpu.steps import CASES, GPU, fit

STEPS = 2


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("name", ["residual", "U-Net", "GPT"])
def test_it_is_near_what_training_holds(name, jit_compile):
    case = CASES[name]
    gc.collect()
    # TensorFlow keeps the variables of models that were traced and are gone.
    beside = tf.config.experimental.get_memory_info(GPU)["current"]
    model = case.compiled()
    model.jit_compile = jit_compile
    found = memory(model, case.batch, device_memory=())
    assert found.how == ("compiled" if jit_compile else "forecast")
    x, y = case.data(STEPS * case.batch)
    peaks = fit(model, x, y, case.batch, epochs=1)
    # Keras lays the arrays themselves down on the GPU.
    inputs = (x.nbytes + y.nbytes) // STEPS
    held = peaks.warm[-1] - (STEPS - 1) * inputs - beside
    assert found.peak == pytest.approx(held, rel=0.1)
