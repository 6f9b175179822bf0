"""A model cut into recomputed blocks against the same model as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("keras")

import keras
import tensorflow as tf
from keras import layers

from experiments.paper.executed.alternatives import in_blocks
from experiments.paper.executed.largest_batch import largest
from experiments.paper.executed.measure import outcome


def branched() -> Any:
    """Convolutions with a residual sum, and a skip by concatenation over half of them."""
    x = inputs = keras.Input((16, 16, 3))
    x = skip = layers.Conv2D(4, 3, padding="same", activation="relu")(x)
    for _ in range(3):
        x = layers.Add()([x, layers.Conv2D(4, 3, padding="same", activation="relu")(x)])
    x = layers.Concatenate()([x, skip])
    for _ in range(3):
        x = layers.Conv2D(4, 3, padding="same", activation="tanh")(x)
    return keras.Model(inputs, layers.Dense(3)(layers.GlobalAveragePooling2D()(x)))


def test_blocks_compute_what_the_model_computes_and_again_for_the_gradients() -> None:
    keras.utils.set_random_seed(0)
    model = branched()
    blocks = in_blocks(model)
    images = tf.random.stateless_normal((2, 16, 16, 3), seed=(0, 1))
    convolutions = {}

    def gradients(network: Any) -> list[Any]:
        @tf.function
        def step(x: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(network(x, training=True) ** 2)
            return [loss, *tape.gradient(loss, model.trainable_weights)]

        graph = step.get_concrete_function(images).graph
        convolutions[network] = sum(each.type == "Conv2D" for each in graph.get_operations())
        return [each.numpy() for each in step(images)]

    for one, other in zip(gradients(model), gradients(blocks), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    assert convolutions[model] == 7
    assert 7 < convolutions[blocks] <= 14


def test_bisection_ends_at_the_limit() -> None:
    for limit in (0, 1, 7, 100, 1000):
        asked: list[int] = []

        def fits(batch: int, limit: int = limit, asked: list[int] = asked) -> bool:
            asked.append(batch)
            return batch <= limit

        assert largest(fits, 40, 1.4, 0.0) == limit
        assert len(asked) < 25
        assert min(asked) >= 1


def test_an_outcome_is_one_line() -> None:
    assert outcome({"ended": "trained"}) == "trained"
    told = "Traceback\n  File x\nValueError: \x1b[1mtoo bad\x1b[0m\nat the end"
    assert outcome({"ended": "error", "why": told}) == "error: ValueError: too bad"
    assert outcome({"ended": "error", "why": ""}) == "error: no message"
