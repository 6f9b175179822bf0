"""Kinds of steps with several networks: one that learns against, from or beside another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import keras
import tensorflow as tf
from keras import layers

from experiments.coverage.kind import Called, Kind, Size
from experiments.coverage.loops import batches, cross_entropy, descend, network

Networks = Callable[[Size], tuple[Any, Any]]
"""Makes a generator and a critic."""


def _adversarial_networks(size: Size) -> tuple[Any, Any]:
    quarter = size.side // 4
    x = noise = keras.Input((16,))
    x = layers.Reshape((quarter, quarter, size.channels))(
        layers.Dense(quarter * quarter * size.channels)(x)
    )
    for _ in range(2):
        x = layers.Conv2DTranspose(size.channels, 4, strides=2, padding="same")(x)
        x = layers.LeakyReLU()(layers.BatchNormalization()(x))
    generator = keras.Model(noise, layers.Conv2D(3, 3, padding="same", activation="tanh")(x))
    x = inputs = keras.Input((size.side, size.side, 3))
    for _ in range(2):
        x = layers.Conv2D(size.channels, 4, strides=2, padding="same")(x)
        x = layers.LeakyReLU()(x)
    critic = keras.Model(inputs, layers.Dense(1)(layers.GlobalAveragePooling2D()(x)))
    return generator, critic


def _deep_adversarial_networks(size: Size) -> tuple[Any, Any]:
    """As of Radford et al., 2016 (DCGAN): images of 64² where `size` is large."""
    halvings = size.depth - 1
    x = noise = keras.Input((16,))
    width = size.channels * 2 ** (halvings - 1)
    x = layers.Reshape((4, 4, width))(layers.Dense(16 * width, use_bias=False)(x))
    x = layers.ReLU()(layers.BatchNormalization()(x))
    for level in range(halvings - 1):
        channels = width // 2 ** (level + 1)
        x = layers.Conv2DTranspose(channels, 5, strides=2, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.Conv2DTranspose(3, 5, strides=2, padding="same", activation="tanh")(x)
    generator = keras.Model(noise, x)
    side = 4 * 2**halvings
    x = inputs = keras.Input((side, side, 3))
    for level in range(halvings):
        x = layers.Conv2D(size.channels * 2**level, 5, strides=2, padding="same")(x)
        x = layers.BatchNormalization()(x) if level else x
        x = layers.Dropout(0.3)(layers.LeakyReLU(0.2)(x))
    return generator, keras.Model(inputs, layers.Dense(1)(layers.Flatten()(x)))


def _adversarial(size: Size, networks: Networks = _adversarial_networks) -> Called:
    """Generator and critic learn in one step, by two tapes."""
    generator, critic = networks(size)
    side = critic.input_shape[1]
    optimizers = [keras.optimizers.Adam(0.001), keras.optimizers.Adam(0.001)]
    for model, optimizer in zip((generator, critic), optimizers, strict=True):
        optimizer.build(model.trainable_variables)

    def step(images: Any, labels: Any) -> Any:
        noise = tf.one_hot(labels, 16)
        with tf.GradientTape() as for_generator, tf.GradientTape() as for_critic:
            made = generator(noise, training=True)
            real, false = critic(images, training=True), critic(made, training=True)
            made_loss = tf.reduce_mean(tf.nn.softplus(-false))
            critic_loss = tf.reduce_mean(tf.nn.softplus(-real) + tf.nn.softplus(false))
        tapes = (for_generator, made_loss), (for_critic, critic_loss)
        for model, optimizer, (tape, loss) in zip(
            (generator, critic), optimizers, tapes, strict=True
        ):
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply(gradients, model.trainable_variables)
        return made_loss, critic_loss

    data = batches(replace(size, side=side))
    return Called(step, data, [generator, critic, *optimizers])


def _dcgan(size: Size) -> Called:
    """The same with networks that are deep."""
    return _adversarial(size, _deep_adversarial_networks)


def _variational(size: Size) -> Called:
    """An autoencoder with noise between its halves."""
    encoder = keras.Sequential(
        [
            keras.Input((size.side, size.side, 3)),
            layers.Conv2D(size.channels, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(2 * size.channels, 3, strides=2, padding="same"),
        ]
    )
    decoder = keras.Sequential(
        [
            keras.Input((size.side // 4, size.side // 4, size.channels)),
            layers.Conv2DTranspose(size.channels, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2DTranspose(3, 3, strides=2, padding="same"),
        ]
    )
    optimizer = keras.optimizers.Adam(0.001)
    optimizer.build([*encoder.trainable_variables, *decoder.trainable_variables])

    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            mean, spread = tf.split(encoder(images, training=True), 2, axis=-1)
            noise = tf.random.stateless_normal(tf.shape(mean), tf.stack([labels[0], 1]))
            again = decoder(mean + tf.exp(0.5 * spread) * noise, training=True)
            loss = tf.reduce_mean(tf.square(again - images))
            loss -= 0.5 * tf.reduce_mean(1 + spread - mean**2 - tf.exp(spread))
        variables = [*encoder.trainable_variables, *decoder.trainable_variables]
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    return Called(step, batches(size), [encoder, decoder, optimizer])


def _momentum_encoder(size: Size) -> Called:
    """Two views of a batch, a slowly moving copy of the network, a contrastive loss."""
    model, slow = network(size, outputs=32), network(size, outputs=32)

    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            first = tf.math.l2_normalize(model(images, training=True), axis=-1)
            second = tf.math.l2_normalize(slow(images[:, :, ::-1], training=False), axis=-1)
            scores = tf.matmul(first, tf.stop_gradient(second), transpose_b=True) / 0.1
            loss = cross_entropy(tf.range(tf.shape(scores)[0]), scores)
        gradients = tape.gradient(loss, model.trainable_variables)
        descend(model.trainable_variables, gradients)
        for variable, copy in zip(model.variables, slow.variables, strict=True):
            if "float" in str(copy.dtype):
                copy.assign(0.99 * copy + 0.01 * variable)
        return loss

    return Called(step, batches(size), [model, slow])


def _distilled(size: Size) -> Called:
    """A teacher that only looks forward beside a student that learns."""
    student, teacher = network(size), network(size)

    def step(images: Any, labels: Any) -> Any:
        answers = tf.nn.softmax(teacher(images, training=False))
        with tf.GradientTape() as tape:
            logits = student(images, training=True)
            losses = tf.nn.softmax_cross_entropy_with_logits(answers, logits)
            loss = tf.reduce_mean(losses) + cross_entropy(labels, logits)
        gradients = tape.gradient(loss, student.trainable_variables)
        descend(student.trainable_variables, gradients)
        return loss

    return Called(step, batches(size), [student, teacher])


_STEPS: dict[str, Callable[[Size], Called]] = {
    "adversarial, both in one step": _adversarial,
    "DCGAN": _dcgan,
    "variational autoencoder": _variational,
    "momentum encoder": _momentum_encoder,
    "distillation": _distilled,
}


def kinds() -> list[Kind]:
    """All of them."""
    return [Kind(name, "loops", make) for name, make in _STEPS.items()]
