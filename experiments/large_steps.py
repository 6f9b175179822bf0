"""Train steps of thousands of operations as graphs: a deep network, and three unrolled ones.

    python -m experiments.solver_benchmark --groups large

Costs are those of the roofline model. Nothing is trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import keras
import tensorflow as tf

import checkmate_tf
from solvers import ComputationGraph

BATCH, CLASSES = 16, 100


def densenet() -> ComputationGraph:
    """DenseNet201 with Adam."""
    model = keras.applications.DenseNet201(weights=None, input_shape=(128, 128, 3), classes=CLASSES)
    return _trained("DenseNet201 step", model, (BATCH, 128, 128, 3))


def lstm() -> ComputationGraph:
    """Two layers of LSTM, unrolled over 100 steps in time, with Adam."""
    inputs = keras.Input((100, 64))
    x = keras.layers.LSTM(256, unroll=True, return_sequences=True, use_cudnn=False)(inputs)
    x = keras.layers.LSTM(256, unroll=True, use_cudnn=False)(x)
    model = keras.Model(inputs, keras.layers.Dense(CLASSES, "softmax")(x))
    return _trained("LSTM step", model, (64, 100, 64))


def tree() -> ComputationGraph:
    """A gated network that joins 512 leaves to one root, two by two."""
    weights = [tf.Variable(tf.random.normal((512, 256)) / 20) for _ in range(2)]

    def joined(left: Any, right: Any) -> Any:
        both = tf.concat([left, right], 1)
        return tf.tanh(both @ weights[0]) * tf.sigmoid(both @ weights[1])

    def step(leaves: Any) -> Any:
        with tf.GradientTape() as tape:
            level = tf.unstack(leaves, axis=1)
            while len(level) > 1:
                level = [joined(*pair) for pair in zip(level[::2], level[1::2], strict=True)]
            loss = tf.reduce_mean(level[0] ** 2)
        _descend(weights, tape.gradient(loss, weights))
        return loss

    return _extracted("tree step", step, tf.TensorSpec((64, 512, 256)))


def gan(unrolled: int = 70) -> ComputationGraph:
    """A generator trained through so many steps of its discriminator (Metz et al., 2017)."""
    generator = _dense_weights(64, 256, 256, 128)
    discriminator = _dense_weights(128, 256, 256, 1)

    def step(noise: Any, real: Any) -> Any:
        with tf.GradientTape() as outer:
            weights = [tf.identity(each) for each in discriminator]
            made = _through(generator, noise)
            for _ in range(unrolled):
                with tf.GradientTape() as inner:
                    inner.watch(weights)
                    loss = _mistaken(weights, real, -1.0) + _mistaken(weights, made, 1.0)
                slopes = inner.gradient(loss, weights)
                weights = [each - 0.1 * slope for each, slope in zip(weights, slopes, strict=True)]
            loss = _mistaken(weights, made, -1.0)
        _descend(generator, outer.gradient(loss, generator))
        return loss

    return _extracted(
        "unrolled GAN step", step, tf.TensorSpec((256, 64)), tf.TensorSpec((256, 128))
    )


LARGE: tuple[Callable[[], ComputationGraph], ...] = (densenet, lstm, tree, gan)


def _trained(name: str, model: Any, size: tuple[int, ...]) -> ComputationGraph:
    model.compile("adam", "sparse_categorical_crossentropy", jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    labels = tf.TensorSpec(size[:1], tf.int32)
    return _extracted(name, lambda x, y: model.train_step((x, y)), tf.TensorSpec(size), labels)


def _extracted(name: str, step: Callable[..., Any], *sizes: tf.TensorSpec) -> ComputationGraph:
    return replace(checkmate_tf.extract(tf.function(step).get_concrete_function(*sizes)), name=name)


def _dense_weights(*widths: int) -> list[tf.Variable]:
    """Of layers from each width to the next, a matrix and a bias in turn."""
    weights = []
    for one, other in pairwise(widths):
        weights += [tf.Variable(tf.random.normal((one, other)) / 20), tf.Variable(tf.zeros(other))]
    return weights


def _through(weights: list[Any], x: Any) -> Any:
    for number in range(0, len(weights), 2):
        x = (tf.tanh(x) if number else x) @ weights[number] + weights[number + 1]
    return x


def _mistaken(weights: list[Any], x: Any, sign: float) -> Any:
    return tf.reduce_mean(tf.nn.softplus(sign * _through(weights, x)))


def _descend(variables: Iterable[Any], gradients: Iterable[Any]) -> None:
    for variable, gradient in zip(variables, gradients, strict=True):
        variable.assign_sub(0.1 * gradient)
