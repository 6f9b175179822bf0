"""Programs that learn to make images."""

from __future__ import annotations

import math
from typing import Any

import keras
import tensorflow as tf
from keras import layers, ops

from experiments.programs.program import BATCHES, Program, Script, examples, images


class Sampling(layers.Layer):  # type: ignore[misc]
    """Draws a code from its mean and the logarithm of its variance."""

    def call(self, inputs: Any) -> Any:
        """A code for each example."""
        z_mean, z_log_var = inputs
        epsilon = tf.random.normal(shape=tf.shape(z_mean))
        return z_mean + tf.exp(0.5 * z_log_var) * epsilon


class VariationalAutoencoder(keras.Model):  # type: ignore[misc]
    """An encoder, a decoder, and a `train_step` that adds up two losses."""

    def __init__(self, encoder: Any, decoder: Any) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        self.total_loss_tracker = keras.metrics.Mean(name="loss")
        self.reconstruction_loss_tracker = keras.metrics.Mean(name="reconstruction_loss")
        self.kl_loss_tracker = keras.metrics.Mean(name="kl_loss")

    @property
    def metrics(self) -> list[Any]:
        """What `fit` resets at each epoch."""
        return [self.total_loss_tracker, self.reconstruction_loss_tracker, self.kl_loss_tracker]

    def train_step(self, data: Any) -> Any:
        """One update; the losses so far."""
        with tf.GradientTape() as tape:
            z_mean, z_log_var, z = self.encoder(data)
            reconstruction = self.decoder(z)
            reconstruction_loss = ops.mean(
                ops.sum(keras.losses.binary_crossentropy(data, reconstruction), axis=(1, 2))
            )
            kl_loss = -0.5 * (1 + z_log_var - ops.square(z_mean) - ops.exp(z_log_var))
            kl_loss = ops.mean(ops.sum(kl_loss, axis=1))
            total_loss = reconstruction_loss + kl_loss
        gradients = tape.gradient(total_loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights, strict=True))
        self.total_loss_tracker.update_state(total_loss)
        self.reconstruction_loss_tracker.update_state(reconstruction_loss)
        self.kl_loss_tracker.update_state(kl_loss)
        return {each.name: each.result() for each in self.metrics}


def _variational_autoencoder(batch: int) -> Script:
    inputs = keras.Input((28, 28, 1))
    x = layers.Conv2D(32, 3, activation="relu", strides=2, padding="same")(inputs)
    x = layers.Conv2D(64, 3, activation="relu", strides=2, padding="same")(x)
    x = layers.Dense(16, activation="relu")(layers.Flatten()(x))
    z_mean, z_log_var = layers.Dense(2)(x), layers.Dense(2)(x)
    encoder = keras.Model(inputs, [z_mean, z_log_var, Sampling()([z_mean, z_log_var])])
    latent = keras.Input((2,))
    x = layers.Dense(7 * 7 * 64, activation="relu")(latent)
    x = layers.Reshape((7, 7, 64))(x)
    x = layers.Conv2DTranspose(64, 3, activation="relu", strides=2, padding="same")(x)
    x = layers.Conv2DTranspose(32, 3, activation="relu", strides=2, padding="same")(x)
    outputs = layers.Conv2DTranspose(1, 3, activation="sigmoid", padding="same")(x)
    model = VariationalAutoencoder(encoder, keras.Model(latent, outputs))
    model.compile(optimizer=keras.optimizers.Adam())
    return Script(model, (images(examples(batch), 28, 1),), {"batch_size": batch})


class WassersteinGAN(keras.Model):  # type: ignore[misc]
    """A generator, and a critic that is trained more often, with a gradient penalty."""

    def __init__(self, discriminator: Any, generator: Any, latent_dim: int, d_steps: int) -> None:
        super().__init__()
        self.discriminator, self.generator = discriminator, generator
        self.latent_dim, self.d_steps, self.gp_weight = latent_dim, d_steps, 10.0

    def compile(self, d_optimizer: Any, g_optimizer: Any) -> None:
        """Each network has an optimizer of its own."""
        super().compile()
        self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer

    def gradient_penalty(self, batch_size: Any, real_images: Any, fake_images: Any) -> Any:
        """How far the critic's gradients between real and made images are from length 1."""
        alpha = tf.random.uniform([batch_size, 1, 1, 1], 0.0, 1.0)
        interpolated = real_images + alpha * (fake_images - real_images)
        with tf.GradientTape() as gp_tape:
            gp_tape.watch(interpolated)
            pred = self.discriminator(interpolated, training=True)
        grads = gp_tape.gradient(pred, [interpolated])[0]
        norm = tf.sqrt(tf.reduce_sum(tf.square(grads), axis=[1, 2, 3]))
        return tf.reduce_mean((norm - 1.0) ** 2)

    def train_step(self, real_images: Any) -> Any:
        """Some updates of the critic, one of the generator; both losses."""
        if isinstance(real_images, tuple):
            real_images = real_images[0]
        batch_size = tf.shape(real_images)[0]
        for _ in range(self.d_steps):
            random_latent_vectors = tf.random.normal(shape=(batch_size, self.latent_dim))
            with tf.GradientTape() as tape:
                fake_images = self.generator(random_latent_vectors, training=True)
                fake_logits = self.discriminator(fake_images, training=True)
                real_logits = self.discriminator(real_images, training=True)
                d_loss = tf.reduce_mean(fake_logits) - tf.reduce_mean(real_logits)
                gp = self.gradient_penalty(batch_size, real_images, fake_images)
                d_loss = d_loss + gp * self.gp_weight
            d_gradient = tape.gradient(d_loss, self.discriminator.trainable_variables)
            self.d_optimizer.apply_gradients(
                zip(d_gradient, self.discriminator.trainable_variables, strict=True)
            )
        random_latent_vectors = tf.random.normal(shape=(batch_size, self.latent_dim))
        with tf.GradientTape() as tape:
            generated_images = self.generator(random_latent_vectors, training=True)
            g_loss = -tf.reduce_mean(self.discriminator(generated_images, training=True))
        gen_gradient = tape.gradient(g_loss, self.generator.trainable_variables)
        self.g_optimizer.apply_gradients(
            zip(gen_gradient, self.generator.trainable_variables, strict=True)
        )
        return {"d_loss": d_loss, "g_loss": g_loss}


def _critic() -> Any:
    inputs = keras.Input((28, 28, 1))
    x = layers.ZeroPadding2D((2, 2))(inputs)
    for filters, drop in ((16, False), (32, True), (64, True), (128, False)):
        x = layers.Conv2D(filters, 5, strides=2, padding="same")(x)
        x = layers.LeakyReLU(0.2)(x)
        x = layers.Dropout(0.3)(x) if drop else x
    x = layers.Dropout(0.2)(layers.Flatten()(x))
    return keras.Model(inputs, layers.Dense(1)(x))


def _generator(latent_dim: int) -> Any:
    inputs = keras.Input((latent_dim,))
    x = layers.Dense(4 * 4 * 64, use_bias=False)(inputs)
    x = layers.LeakyReLU(0.2)(layers.BatchNormalization()(x))
    x = layers.Reshape((4, 4, 64))(x)
    for filters, activation in ((32, layers.LeakyReLU(0.2)), (16, layers.LeakyReLU(0.2))):
        x = layers.UpSampling2D(2)(x)
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = activation(layers.BatchNormalization()(x))
    x = layers.Conv2D(1, 3, padding="same", use_bias=False)(layers.UpSampling2D(2)(x))
    x = layers.Activation("tanh")(layers.BatchNormalization()(x))
    return keras.Model(inputs, layers.Cropping2D((2, 2))(x))


def _wasserstein_gan(batch: int) -> Script:
    model = WassersteinGAN(_critic(), _generator(128), latent_dim=128, d_steps=3)
    model.compile(
        d_optimizer=keras.optimizers.Adam(2e-4, beta_1=0.5, beta_2=0.9),
        g_optimizer=keras.optimizers.Adam(2e-4, beta_1=0.5, beta_2=0.9),
    )
    return Script(model, (2 * images(examples(batch), 28, 1) - 1,), {"batch_size": batch})


@keras.saving.register_keras_serializable()  # type: ignore[untyped-decorator]
def _sinusoidal_embedding(x: Any) -> Any:
    frequencies = ops.exp(ops.linspace(ops.log(1.0), ops.log(1000.0), 16))
    angular_speeds = ops.cast(2.0 * math.pi * frequencies, "float32")
    return ops.concatenate([ops.sin(angular_speeds * x), ops.cos(angular_speeds * x)], axis=3)


def _residual_block(x: Any, width: int) -> Any:
    residual = x if x.shape[3] == width else layers.Conv2D(width, 1)(x)
    x = layers.BatchNormalization(center=False, scale=False)(x)
    x = layers.Conv2D(width, 3, padding="same", activation="swish")(x)
    x = layers.Conv2D(width, 3, padding="same")(x)
    return layers.Add()([x, residual])


def _denoiser(side: int, widths: tuple[int, ...], depth: int) -> Any:
    noisy_images = keras.Input((side, side, 3))
    noise_variances = keras.Input((1, 1, 1))
    e = layers.Lambda(_sinusoidal_embedding, output_shape=(1, 1, 32))(noise_variances)
    e = layers.UpSampling2D(size=side, interpolation="nearest")(e)
    x = layers.Concatenate()([layers.Conv2D(widths[0], 1)(noisy_images), e])
    skips = []
    for width in widths[:-1]:
        for _ in range(depth):
            x = _residual_block(x, width)
            skips.append(x)
        x = layers.AveragePooling2D(2)(x)
    for _ in range(depth):
        x = _residual_block(x, widths[-1])
    for width in reversed(widths[:-1]):
        x = layers.UpSampling2D(2, interpolation="bilinear")(x)
        for _ in range(depth):
            x = _residual_block(layers.Concatenate()([x, skips.pop()]), width)
    outputs = layers.Conv2D(3, 1, kernel_initializer="zeros")(x)
    return keras.Model([noisy_images, noise_variances], outputs)


class DiffusionModel(keras.Model):  # type: ignore[misc]
    """A network that finds the noise in an image, and a slower copy of it."""

    def __init__(self, side: int, batch: int) -> None:
        super().__init__()
        self.side, self.batch = side, batch
        self.normalizer = layers.Normalization()
        self.network = _denoiser(side, widths=(16, 32, 48, 64), depth=2)
        self.ema_network = keras.models.clone_model(self.network)

    def compile(self, **kwargs: Any) -> None:
        """Two losses are followed."""
        super().compile(**kwargs)
        self.noise_loss_tracker = keras.metrics.Mean(name="n_loss")
        self.image_loss_tracker = keras.metrics.Mean(name="i_loss")

    @property
    def metrics(self) -> list[Any]:
        """What `fit` resets at each epoch."""
        return [self.noise_loss_tracker, self.image_loss_tracker]

    def diffusion_schedule(self, diffusion_times: Any) -> Any:
        """Shares of noise and of signal at these times."""
        start_angle, end_angle = ops.cast(ops.arccos(0.95), "float32"), ops.arccos(0.02)
        diffusion_angles = start_angle + diffusion_times * (end_angle - start_angle)
        return ops.sin(diffusion_angles), ops.cos(diffusion_angles)

    def train_step(self, images: Any) -> Any:
        """One update of the network, and of its slower copy; the losses so far."""
        images = self.normalizer(images, training=True)
        noises = keras.random.normal(shape=(self.batch, self.side, self.side, 3))
        diffusion_times = keras.random.uniform(shape=(self.batch, 1, 1, 1), minval=0.0, maxval=1.0)
        noise_rates, signal_rates = self.diffusion_schedule(diffusion_times)
        noisy_images = signal_rates * images + noise_rates * noises
        with tf.GradientTape() as tape:
            pred_noises = self.network([noisy_images, noise_rates**2], training=True)
            pred_images = (noisy_images - noise_rates * pred_noises) / signal_rates
            noise_loss = self.loss(noises, pred_noises)
            image_loss = self.loss(images, pred_images)
        gradients = tape.gradient(noise_loss, self.network.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.network.trainable_weights, strict=True))
        self.noise_loss_tracker.update_state(noise_loss)
        self.image_loss_tracker.update_state(image_loss)
        for weight, ema_weight in zip(self.network.weights, self.ema_network.weights, strict=True):
            ema_weight.assign(0.999 * ema_weight + 0.001 * weight)
        return {each.name: each.result() for each in self.metrics}


def _diffusion(batch: int) -> Script:
    side = 32
    data = (
        tf.data.Dataset.from_tensor_slices(images(BATCHES * batch, side))
        .cache()
        .shuffle(10 * batch)
        .batch(batch, drop_remainder=True)
        .prefetch(buffer_size=tf.data.AUTOTUNE)
    )
    model = DiffusionModel(side, batch)
    model.normalizer.adapt(data)
    model.compile(
        optimizer=keras.optimizers.AdamW(1e-3, weight_decay=1e-4),
        loss=keras.losses.mean_absolute_error,
    )
    return Script(model, (data,), {})


PROGRAMS = (
    Program("variational autoencoder", "examples/generative/vae", 128, _variational_autoencoder),
    Program("Wasserstein GAN", "examples/generative/wgan_gp", 64, _wasserstein_gan),
    Program("denoising diffusion", "examples/generative/ddim", 32, _diffusion),
)
