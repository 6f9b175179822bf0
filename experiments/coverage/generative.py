"""Kinds of steps that learn to make things: diffusion, flows, codes, critics, rendered scenes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from experiments.coverage.kind import STEPS, Called, Kind, Size
from experiments.coverage.loops import batches, descend, network


def _optimizer(*models: Any) -> Any:
    optimizer = keras.optimizers.Adam(0.001)
    optimizer.build([each for model in models for each in model.trainable_variables])
    return optimizer


def _denoiser(size: Size) -> Any:
    """A small U-Net that is told how much noise there is."""
    images, time = keras.Input((size.side, size.side, 3)), keras.Input((1,))
    waves = layers.Dense(4 * size.channels, activation="swish")(layers.Rescaling(0.01)(time))
    x = layers.Conv2D(size.channels, 3, padding="same")(images)
    skips = []
    for level in (1, 2):
        skips.append(x)
        x = layers.Conv2D(size.channels * level, 3, strides=2, padding="same")(x)
        shift = layers.Dense(size.channels * level)(waves)
        x = layers.Add()([x, layers.Reshape((1, 1, size.channels * level))(shift)])
        x = layers.Activation("swish")(layers.GroupNormalization(4)(x))
    for skip in reversed(skips):
        x = layers.Concatenate()([layers.UpSampling2D()(x), skip])
        x = layers.Conv2D(size.channels, 3, padding="same", activation="swish")(x)
    return keras.Model([images, time], layers.Conv2D(3, 3, padding="same")(x))


def _diffusion(size: Size) -> Called:
    """As of Ho et al., 2020: noise of a random time is predicted; an average of the weights."""
    model, average = _denoiser(size), _denoiser(size)
    average.set_weights(model.get_weights())
    optimizer = _optimizer(model)
    kept = tf.constant(np.cumprod(1 - np.linspace(1e-4, 0.02, 100)), tf.float32)

    def step(images: Any, labels: Any) -> Any:
        count = tf.shape(images)[0]
        time = tf.random.uniform((count,), 0, 100, tf.int32, seed=1)
        noise = tf.random.normal(tf.shape(images), seed=2)
        share = tf.gather(kept, time)[:, None, None, None]
        noisy = tf.sqrt(share) * images + tf.sqrt(1 - share) * noise
        with tf.GradientTape() as tape:
            found = model([noisy, tf.cast(time, tf.float32)[:, None]], training=True)
            loss = tf.reduce_mean(tf.square(found - noise))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        for variable, slow in zip(model.weights, average.weights, strict=True):
            slow.assign(0.99 * slow + 0.01 * variable)
        return {"loss": loss}

    return Called(step, batches(size), [model, average, optimizer])


def _wasserstein(size: Size) -> Called:
    """As of Gulrajani et al., 2017: a critic's slope between real and made, three times a step."""
    quarter = size.side // 4
    generator = keras.Sequential(
        [
            keras.Input((16,)),
            layers.Dense(quarter * quarter * size.channels),
            layers.Reshape((quarter, quarter, size.channels)),
            layers.Conv2DTranspose(size.channels, 4, strides=2, padding="same", activation="relu"),
            layers.Conv2DTranspose(3, 4, strides=2, padding="same", activation="tanh"),
        ]
    )
    critic = keras.Sequential(
        [
            keras.Input((size.side, size.side, 3)),
            layers.Conv2D(size.channels, 3, strides=2, padding="same"),
            layers.LeakyReLU(),
            layers.LayerNormalization(),
            layers.Conv2D(2 * size.channels, 3, strides=2, padding="same"),
            layers.LeakyReLU(),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )
    optimizers = _optimizer(generator), _optimizer(critic)

    def slope(real: Any, made: Any) -> Any:
        mix = tf.random.uniform((tf.shape(real)[0], 1, 1, 1), seed=3)
        between = mix * real + (1 - mix) * made
        with tf.GradientTape() as tape:
            tape.watch(between)
            score = critic(between, training=True)
        gradients = tape.gradient(score, between)
        norms = tf.sqrt(tf.reduce_sum(tf.square(gradients), axis=[1, 2, 3]) + 1e-12)
        return tf.reduce_mean((norms - 1.0) ** 2)

    def step(images: Any, labels: Any) -> Any:
        for _ in range(2):
            noise = tf.random.normal((tf.shape(images)[0], 16), seed=4)
            with tf.GradientTape() as tape:
                made = generator(noise, training=True)
                scores = critic(made, training=True), critic(images, training=True)
                loss = tf.reduce_mean(scores[0]) - tf.reduce_mean(scores[1])
                loss += 10.0 * slope(images, made)
            gradients = tape.gradient(loss, critic.trainable_variables)
            optimizers[1].apply_gradients(zip(gradients, critic.trainable_variables, strict=True))
        with tf.GradientTape() as tape:
            noise = tf.random.normal((tf.shape(images)[0], 16), seed=5)
            made_loss = -tf.reduce_mean(critic(generator(noise, training=True), training=True))
        gradients = tape.gradient(made_loss, generator.trainable_variables)
        optimizers[0].apply_gradients(zip(gradients, generator.trainable_variables, strict=True))
        return {"critic": loss, "generator": made_loss}

    return Called(step, batches(size), [generator, critic, *optimizers])


def _codes(size: Size) -> Called:
    """As of van den Oord et al., 2017 (VQ-VAE): the nearest code, which follows by an average."""
    encoder = keras.Sequential(
        [
            keras.Input((size.side, size.side, 3)),
            layers.Conv2D(size.channels, 4, strides=2, padding="same", activation="relu"),
            layers.Conv2D(size.channels, 3, padding="same"),
        ]
    )
    decoder = keras.Sequential(
        [
            keras.Input((size.side // 2, size.side // 2, size.channels)),
            layers.Conv2D(size.channels, 3, padding="same", activation="relu"),
            layers.Conv2DTranspose(3, 4, strides=2, padding="same"),
        ]
    )
    book = tf.Variable(tf.random.stateless_normal((32, size.channels), (1, 2)), trainable=False)
    uses, sums = tf.Variable(tf.ones(32)), tf.Variable(book)
    optimizer = _optimizer(encoder, decoder)

    def step(images: Any, labels: Any) -> Any:
        variables = [*encoder.trainable_variables, *decoder.trainable_variables]
        with tf.GradientTape() as tape:
            found = encoder(images, training=True)
            flat = tf.reshape(found, (-1, size.channels))
            far = tf.reduce_sum(flat**2, 1, keepdims=True) - 2 * flat @ tf.transpose(book)
            places = tf.argmin(far + tf.reduce_sum(tf.transpose(book) ** 2, 0), axis=1)
            coded = tf.reshape(tf.nn.embedding_lookup(book, places), tf.shape(found))
            again = decoder(found + tf.stop_gradient(coded - found), training=True)
            loss = tf.reduce_mean((again - images) ** 2)
            loss += 0.25 * tf.reduce_mean((tf.stop_gradient(coded) - found) ** 2)
        optimizer.apply(tape.gradient(loss, variables), variables)
        chosen = tf.one_hot(places, 32)
        uses.assign(0.99 * uses + 0.01 * tf.reduce_sum(chosen, axis=0))
        sums.assign(0.99 * sums + 0.01 * tf.matmul(chosen, flat, transpose_a=True))
        book.assign(sums / uses[:, None])
        return loss

    return Called(step, batches(size), [encoder, decoder, optimizer, [book, uses, sums]])


def _flow(size: Size) -> Called:
    """As of Dinh et al., 2017 (RealNVP), on rows of numbers: halves that change each other."""
    width = 4 * size.channels
    halves = [
        keras.Sequential(
            [
                keras.Input((width // 2,)),
                layers.Dense(16 * width, activation="relu"),
                layers.Dense(16 * width, activation="relu"),
                layers.Dense(width),
            ]
        )
        for _ in range(size.depth)
    ]
    turns = [
        tf.Variable(np.linalg.qr(np.random.default_rng(1).normal(size=(width, width)))[0])
        for _ in range(size.depth)
    ]
    turns = [tf.Variable(tf.cast(each, tf.float32)) for each in turns]
    variables = [each.value for half in halves for each in half.trainable_variables] + turns

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            z, change = x, 0.0
            for half, turn in zip(halves, turns, strict=True):
                z = z @ turn
                change += tf.linalg.slogdet(turn).log_abs_determinant
                first, second = tf.split(z, 2, axis=-1)
                shift, scale = tf.split(half(first), 2, axis=-1)
                scale = tf.tanh(scale)
                z = tf.concat([second * tf.exp(scale) + shift, first], axis=-1)
                change += tf.reduce_sum(scale, axis=-1)
            loss = tf.reduce_mean(0.5 * tf.reduce_sum(z**2, axis=-1) - change)
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, variables), 1.0)
        descend(variables, gradients)
        return loss

    draw = np.random.default_rng(0)
    rows = (size.batch * size.side, width)
    data = [(tf.constant(draw.normal(size=rows), tf.float32),) for _ in range(STEPS)]
    return Called(step, data, [*halves, turns])


def _style(size: Size) -> Called:
    """As of Gatys et al., 2016: the image is what learns; the network stays."""
    model = network(size)
    names = [each.name for each in model.layers if isinstance(each, layers.Conv2D)]
    features = keras.Model(model.inputs, [model.get_layer(each).output for each in names])
    features.trainable = False
    image = tf.Variable(tf.random.stateless_normal((1, size.side, size.side, 3), (1, 2)))
    optimizer = keras.optimizers.Adam(0.02)
    optimizer.build([image])

    def gram(x: Any) -> Any:
        return tf.linalg.einsum("bijc,bijd->bcd", x, x) / (size.side * size.side)

    def step(style: Any, labels: Any) -> Any:
        wanted = [gram(each) for each in features(style)]
        with tf.GradientTape() as tape:
            found = features(image)
            loss = tf.add_n(
                [
                    tf.reduce_mean((gram(a) - tf.reduce_mean(b, 0, keepdims=True)) ** 2)
                    for a, b in zip(found, wanted, strict=True)
                ]
            )
            loss += 1e-3 * tf.reduce_sum(tf.image.total_variation(image))
        optimizer.apply_gradients([(tape.gradient(loss, image), image)])
        image.assign(tf.clip_by_value(image, -3.0, 3.0))
        return loss

    return Called(step, batches(size), [model, [image], optimizer])


def _rendered(size: Size) -> Called:
    """As of Mildenhall et al., 2020 (NeRF): colours along rays, added up by what hides them."""
    points, waves = 2 * size.side, 6
    field = keras.Sequential(
        [
            keras.Input((points, 3 * 2 * waves)),
            *[layers.Dense(4 * size.channels, activation="relu") for _ in range(size.depth)],
            layers.Dense(4),
        ]
    )
    optimizer = _optimizer(field)

    def step(rays: Any, colours: Any) -> Any:
        far = tf.linspace(2.0, 6.0, points) + tf.random.uniform((points,), 0.0, 0.05, seed=1)
        places = rays[:, None, :3] + rays[:, None, 3:] * far[None, :, None]
        scaled = places[..., None] * 2.0 ** tf.range(waves, dtype=tf.float32)
        encoded = tf.concat([tf.sin(scaled), tf.cos(scaled)], axis=-1)
        encoded = tf.reshape(encoded, (-1, points, 3 * 2 * waves))
        with tf.GradientTape() as tape:
            found = field(encoded, training=True)
            gaps = tf.concat([far[1:] - far[:-1], [1e10]], axis=0)
            dense = 1.0 - tf.exp(-tf.nn.relu(found[..., 3]) * gaps)
            weights = dense * tf.math.cumprod(1.0 - dense + 1e-10, axis=-1, exclusive=True)
            seen = tf.reduce_sum(weights[..., None] * tf.sigmoid(found[..., :3]), axis=-2)
            loss = tf.reduce_mean((seen - colours) ** 2)
        gradients = tape.gradient(loss, field.trainable_variables)
        optimizer.apply_gradients(zip(gradients, field.trainable_variables, strict=True))
        return loss, -10.0 * tf.math.log(loss) / tf.math.log(10.0)

    draw = np.random.default_rng(0)
    data = [
        (
            tf.constant(draw.normal(size=(8 * size.batch, 6)), tf.float32),
            tf.constant(draw.uniform(size=(8 * size.batch, 3)), tf.float32),
        )
        for _ in range(STEPS)
    ]
    return Called(step, data, [field, optimizer])


_STEPS: dict[str, Callable[[Size], Called]] = {
    "diffusion": _diffusion,
    "Wasserstein critic with a gradient penalty": _wasserstein,
    "vector-quantized autoencoder": _codes,
    "normalizing flow": _flow,
    "style transfer": _style,
    "radiance field": _rendered,
}


def kinds() -> list[Kind]:
    """All of them."""
    return [Kind(name, "generative", make) for name, make in _STEPS.items()]
