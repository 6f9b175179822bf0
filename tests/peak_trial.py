"""Train small Keras models by a plan and plainly, in a process of its own: peaks and losses.

    python -m tests.peak_trial residual --share 0.6 --output figures.json

Every step's peak is the allocator's own. The allocator's past would be in it, hence the process.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

import checkmate_tf
from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import held_bytes, run_measured
from checkmate_tf.workloads.models import gpt
from checkmate_tf.workloads.trial import turn_off_fusions
from tests.steps import restore, snapshot

STEPS = 3
SIDE, BATCH = 64, 16


def convolutional() -> Any:
    """Depthwise and grouped convolutions, batch normalization, dropout."""
    x = inputs = keras.Input((SIDE, SIDE, 3))
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    for filters in (16, 32):
        for _ in range(3):
            x = layers.DepthwiseConv2D(3, padding="same")(x)
            x = layers.ReLU(6)(layers.BatchNormalization()(x))
            x = layers.Conv2D(filters, 1)(x)
            x = layers.Activation("swish")(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(32, 3, padding="same", groups=4, activation="relu")(x)
    x = layers.Dropout(0.2)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(inputs, layers.Dense(10)(x))


def residual() -> Any:
    """Bottleneck blocks that are added to what they read."""
    x = inputs = keras.Input((SIDE, SIDE, 3))
    x = layers.Conv2D(32, 3, padding="same")(x)
    for _ in range(4):
        y = layers.ReLU()(layers.BatchNormalization()(x))
        y = layers.Conv2D(16, 1)(y)
        y = layers.ReLU()(layers.BatchNormalization()(y))
        y = layers.Conv2D(16, 3, padding="same", use_bias=False)(y)
        y = layers.ReLU()(layers.BatchNormalization()(y))
        x = layers.Add()([x, layers.Conv2D(32, 1)(y)])
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def recurrent() -> Any:
    """Layers whose steps are convolutions, over short videos."""
    x = inputs = keras.Input((4, 32, 32, 3))
    for sequences in (True, False):
        x = layers.ConvLSTM2D(12, 3, padding="same", return_sequences=sequences)(x)
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(x)
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def attention() -> Any:
    """Blocks of a transformer over short texts, which it continues."""
    return gpt(64, words=64, blocks=3, width=128, heads=4)


def classifier(build: Callable[[], Any]) -> tuple[list[Any], list[Any], list[tuple[Any, ...]]]:
    """What has variables, the steps of one round, and the data of some rounds."""
    model = build()
    model.compile(
        optimizer=keras.optimizers.SGD(0.01, momentum=0.9),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    model.optimizer.build(model.trainable_variables)
    draw = np.random.default_rng(0)

    def inputs(spec: Any) -> Any:
        shape = (BATCH, *spec.shape[1:])
        values = draw.integers(0, 64, shape) if "int" in spec.dtype else draw.normal(size=shape)
        return tf.constant(values, spec.dtype)

    labels = (BATCH, *model.output_shape[1:-1])
    data = [
        (inputs(model.inputs[0]), tf.constant(draw.integers(0, 10, labels), tf.int32))
        for _ in range(STEPS)
    ]

    def step(images: Any, targets: Any) -> Any:
        return model.train_step((images, targets))["loss"]

    return [model], [step], data


def adversarial() -> tuple[list[Any], list[Any], list[tuple[Any, ...]]]:
    """A generator and a discriminator, each with a step of its own."""
    x = inputs = keras.Input((32,))
    x = layers.Reshape((16, 16, 16))(layers.Dense(16 * 16 * 16)(x))
    for filters in (16, 8):
        x = layers.Conv2DTranspose(filters, 4, strides=2, padding="same")(x)
        x = layers.LeakyReLU()(layers.BatchNormalization()(x))
        x = layers.LeakyReLU()(layers.Conv2D(filters, 3, padding="same")(x))
    generator = keras.Model(inputs, layers.Conv2D(3, 3, padding="same", activation="tanh")(x))
    x = inputs = keras.Input((SIDE, SIDE, 3))
    for filters in (8, 16, 16):
        x = layers.LeakyReLU()(layers.Conv2D(filters, 3, padding="same")(x))
        x = layers.LeakyReLU()(layers.Conv2D(filters, 4, strides=2, padding="same")(x))
    discriminator = keras.Model(inputs, layers.Dense(1)(layers.GlobalAveragePooling2D()(x)))
    for model in (generator, discriminator):
        model.optimizer = keras.optimizers.Adam(1e-3)
        model.optimizer.build(model.trainable_variables)
    cross_entropy = keras.losses.BinaryCrossentropy(from_logits=True)

    def learn(model: Any, tape: Any, loss: Any) -> Any:
        variables = model.trainable_variables
        model.optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    def judge(images: Any, noise: Any) -> Any:
        made = generator(noise, training=True)
        with tf.GradientTape() as tape:
            real, false = (discriminator(each, training=True) for each in (images, made))
            loss = cross_entropy(tf.ones_like(real), real)
            loss += cross_entropy(tf.zeros_like(false), false)
        return learn(discriminator, tape, loss)

    def generate(images: Any, noise: Any) -> Any:
        with tf.GradientTape() as tape:
            judged = discriminator(generator(noise, training=True), training=True)
            loss = cross_entropy(tf.ones_like(judged), judged)
        return learn(generator, tape, loss)

    draw = np.random.default_rng(0)
    batch = 3 * BATCH
    shapes = (batch, SIDE, SIDE, 3), (batch, 32)
    data = [
        tuple(tf.constant(draw.normal(size=shape), tf.float32) for shape in shapes)
        for _ in range(STEPS)
    ]
    return [generator, discriminator], [judge, generate], data


TRIALS: dict[str, Callable[[], tuple[list[Any], list[Any], list[tuple[Any, ...]]]]] = {
    "convolutional": lambda: classifier(convolutional),
    "residual": lambda: classifier(residual),
    "attention": lambda: classifier(attention),
    "recurrent": lambda: classifier(recurrent),
    "adversarial": adversarial,
}


def train(
    steps: list[Any], data: list[tuple[Any, ...]]
) -> tuple[list[list[float]], list[list[int]]]:
    """Losses, and peaks in bytes: a list for every step, of one value for every round."""
    losses: list[list[float]] = [[] for _ in steps]
    peaks: list[list[int]] = [[] for _ in steps]
    for each in data:
        for number, step in enumerate(steps):
            loss, peak = run_measured(step, *each, device="CPU:0")
            losses[number].append(float(loss))
            peaks[number].append(peak)
    return losses, peaks


def main() -> None:
    """Train as the arguments say, and write the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=TRIALS)
    parser.add_argument("--share", type=float, required=True, help="the budget")
    parser.add_argument("--exact", action="store_true", help="graph rewrites off")
    parser.add_argument("--output", required=True)
    arguments = parser.parse_args()
    if arguments.exact:
        turn_off_fusions()
    current_device().reserve(1 << 30)
    keras.utils.set_random_seed(0)
    models, functions, data = TRIALS[arguments.model]()
    start = [snapshot(model) for model in models]
    steps = [
        checkmate_tf.rematerialize(each, budget=arguments.share, time_limit=8) for each in functions
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        losses, peaks = train(steps, data)
    plans = [step.plan for step in steps]
    for model, values in zip(models, start, strict=True):
        restore(model, values)
        model.reset_metrics()  # the loss is the mean so far
    resident = held_bytes()
    plain = [tf.function(each, jit_compile=False) for each in functions]
    plain_losses, plain_peaks = train(plain, data)
    figures = [
        {
            "budget": plan.budget,
            "recomputations": len(plan.schedule) - len(plan.graph),
            "notes": plan.notes,
            "warnings": [str(each.message) for each in caught],
            "resident": resident,
            "peaks": peaks[number],
            "plain_peaks": plain_peaks[number],
            "losses": losses[number],
            "plain_losses": plain_losses[number],
        }
        for number, plan in enumerate(plans)
    ]
    with open(arguments.output, "w") as file:
        json.dump(figures, file)


if __name__ == "__main__":
    main()
