"""Batches are made while steps run, as many as in `fit`, and none is left behind."""

from __future__ import annotations

import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.planning.trial.input_pipeline import batches_like
from checkmate_tf.planning.variable_places import outside_tensor

SIDE = 1024
BYTES = 4 * SIDE**2


class MostHeld(keras.callbacks.Callback):
    """Looks at what is held while a batch is waited for, which takes long."""

    most = 0

    def on_train_batch_begin(self, batch, logs=None):
        self.most = max(self.most, most_held())


def most_held():
    most, end = 0, time.monotonic() + 0.3
    while time.monotonic() < end:
        most = max(most, held_bytes())
        time.sleep(0.01)
    return most


@pytest.mark.usefixtures("memory_in_one_piece")
def test_as_many_batches_are_ready_as_in_fit():
    begin = held_bytes()
    batches = batches_like([outside_tensor(tf.ones((SIDE, SIDE)))])
    assert held_bytes() - begin < BYTES
    ours = 0
    for _ in range(4):
        next(batches)
        ours = max(ours, round((most_held() - begin) / BYTES))
    del batches
    assert abs(held_bytes() - begin) < BYTES / 4

    model = keras.Sequential([keras.Input((SIDE,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    count = ours + 4  # on many cores many are ready, of fewer all of them
    data = outside_tensor(tf.ones((count * SIDE, SIDE)))
    begin, seen = held_bytes(), MostHeld()
    model.fit(data, np.zeros((count * SIDE, 1)), batch_size=SIDE, verbose=0, callbacks=[seen])
    of_keras = round((seen.most - begin) / BYTES)
    assert ours >= 2
    assert abs(ours - of_keras) <= 1


@pytest.mark.parametrize("dtype", [tf.float32, tf.int64, tf.bool, tf.string, tf.bfloat16])
def test_batches_are_equal_and_have_memory_of_their_own(dtype):
    given = tf.fill((4, 3), "a") if dtype == tf.string else tf.cast(tf.eye(4, 3), dtype)
    batches = batches_like([given, tf.constant(2.0)])
    for _ in range(3):
        batch, scalar = next(batches)
        assert batch.dtype == dtype
        assert batch.shape == (4, 3)
        assert bool(tf.reduce_all(batch == given))
        assert float(scalar) == 2.0
    if dtype == tf.float32:
        assert np.asarray(batch).ctypes.data != np.asarray(given).ctypes.data
