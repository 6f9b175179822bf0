"""What runs inside `fit`: a plan that takes more than its budget is replaced there, too."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf

import checkmate_tf
from checkmate_tf.devices.measure import held_bytes, peak_bytes
from checkmate_tf.planning.settings import LEANER_ATTEMPTS
from tests.dense_steps import adam, dense_model, numbers, same, variables
from tests.messages import warns

if held_bytes() is None:
    pytest.skip("the allocator keeps no count", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("memory_in_one_piece")

BATCH, BATCHES, BESIDE_FROM = 2048, 9, 2


class HoldsMore(keras.callbacks.Callback):
    """Holds a tensor beside the steps from one batch on; the peak of each batch.

    The tensor leaves a little more than it takes of the budget of the plan.
    """

    def __init__(self, step):
        super().__init__()
        self.step, self.peaks, self.budgets, self.beside = step, [], [], []

    def on_train_batch_begin(self, batch, logs=None):
        tf.config.experimental.reset_memory_stats("CPU:0")

    def on_train_batch_end(self, batch, logs=None):
        self.peaks.append(peak_bytes())
        self.budgets.append(self.step.plan.budget)
        if batch == BESIDE_FROM:
            room = self.budgets[-1] - self.peaks[-1]
            while sum(each.shape[0] for each in self.beside) <= room:
                self.beside.append(tf.zeros(512 << 10, tf.uint8))


def trained(rematerialized):
    model = dense_model(depth=24)
    model.compile(adam(), "mse", jit_compile=False)
    if rematerialized:
        model = checkmate_tf.rematerialize(model, budget=0.9, time_limit=8, batch_size=BATCH)
    seen = HoldsMore(model.train_step) if rematerialized else None
    x, y = numbers(BATCHES * BATCH)
    model.fit(x, y, BATCH, verbose=0, shuffle=False, callbacks=[seen] if seen else [])
    return model, seen


@pytest.mark.slow
def test_in_fit_a_leaner_plan_takes_over_with_the_next_batch():
    with warns("over-budget-planned-again") as told:
        model, seen = trained(rematerialized=True)
    (budget,) = set(seen.budgets)
    first_over = next(batch for batch, peak in enumerate(seen.peaks) if peak > budget)
    assert first_over == BESIDE_FROM + 1
    assert len(told) <= LEANER_ATTEMPTS
    assert max(seen.peaks[-2:]) <= budget
    plain, _ = trained(rematerialized=False)
    same(variables(model), variables(plain))
