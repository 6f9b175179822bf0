"""Operations as messages name them."""

from __future__ import annotations

import re
from pathlib import Path

import keras
import numpy as np

import checkmate_tf
from solvers import BudgetError
from tests.messages import raises


def test_a_message_about_a_layer_in_fit_names_the_users_line():
    model = keras.Sequential(
        [
            keras.Input((16, 8)),
            keras.layers.GRU(8, return_sequences=True),
            keras.layers.Dense(8, activation="tanh"),
            keras.layers.Dense(1),
        ]
    )
    model.compile("sgd", "mse", jit_compile=False)
    checkmate_tf.rematerialize(model, budget="1KiB", batch_size=4, trial_run=False, verbose=0)
    line = rf"The loop '\S+' \(While, made at {re.escape(str(Path(__file__)))}:\d+\)"
    with raises(BudgetError, "budget-too-small") as caught:
        model.fit(np.ones((4, 16, 8)), np.ones((4, 16, 1)), batch_size=4, verbose=0)
    assert re.search(line, str(caught.value))
