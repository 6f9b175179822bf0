"""Kinds of networks: a layer each, in a classifier that is trained by a step of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from experiments.coverage.kind import STEPS, Called, Kind, Size

Layer = Callable[[Any], Any]


def classifier(
    model: Any, inputs: Callable[[np.random.Generator, Size], Any], size: Size
) -> Called:
    """A step that trains `model`, whose outputs are ten logits, with SGD."""
    optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def step(x: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(x, training=True))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    draw = np.random.default_rng(0)
    data = [
        (tf.constant(inputs(draw, size)), tf.constant(draw.integers(0, 10, size.batch), tf.int32))
        for _ in range(STEPS)
    ]
    return Called(step, data, [model, optimizer])


def images(draw: np.random.Generator, size: Size) -> Any:
    """Random images of three colours."""
    return draw.normal(size=(size.batch, size.side, size.side, 3)).astype("float32")


def words(draw: np.random.Generator, size: Size) -> Any:
    """Random texts, four times as long as an image is wide."""
    return draw.integers(0, 64, (size.batch, 4 * size.side)).astype("int32")


def of_images(layer: Callable[[Size], Layer], lift: bool = True) -> Callable[[Size], Called]:
    """A network of convolutions with that layer after each of them."""

    def make(size: Size) -> Called:
        x = inputs = keras.Input((size.side, size.side, 3))
        if lift:
            x = layers.Conv2D(size.channels, 3, padding="same", activation="relu")(x)
        for _ in range(size.depth):
            x = layer(size)(x)
            if lift:
                x = layers.Conv2D(size.channels, 1, activation="swish")(x)
        x = layers.Dense(10)(layers.GlobalAveragePooling2D()(x))
        return classifier(keras.Model(inputs, x), images, size)

    return make


def of_videos(layer: Callable[[Size], Layer]) -> Callable[[Size], Called]:
    """A network over short videos: batch × 4 × side × side × 3."""

    def make(size: Size) -> Called:
        shape = (4, size.side // 2, size.side // 2, 3)
        x = inputs = keras.Input(shape)
        for _ in range(2):
            x = layers.ReLU()(layer(size)(x))
        x = layers.Dense(10)(layers.Flatten()(x))
        return classifier(
            keras.Model(inputs, x),
            lambda draw, size: draw.normal(size=(size.batch, *shape)).astype("float32"),
            size,
        )

    return make


def of_words(layer: Callable[[Size], Layer], repeat: bool = True) -> Callable[[Size], Called]:
    """A network over texts with that layer after an embedding."""

    def make(size: Size) -> Called:
        x = inputs = keras.Input((4 * size.side,), dtype="int32")
        x = layers.Embedding(64, 2 * size.channels)(x)
        for _ in range(size.depth if repeat else 1):
            x = layer(size)(x)
            x = layers.Dense(2 * size.channels, activation="gelu")(x)
        if len(x.shape) == 3:
            x = layers.GlobalAveragePooling1D()(x)
        return classifier(keras.Model(inputs, layers.Dense(10)(x)), words, size)

    return make


def _transformer(size: Size) -> Layer:
    attention = layers.MultiHeadAttention(4, size.channels)
    return lambda x: layers.LayerNormalization()(x + attention(x, x))


def _grouped_attention(size: Size) -> Layer:
    attention = layers.GroupQueryAttention(size.channels // 2, 4, 2)
    return lambda x: x + attention(x, x)


def _up_and_down(size: Size) -> Layer:
    return lambda x: layers.Conv2DTranspose(size.channels, 4, strides=2, padding="same")(
        layers.Conv2D(2 * size.channels, 3, strides=2, padding="same", activation="relu")(x)
    )


def _skip(size: Size) -> Layer:
    return lambda x: layers.Concatenate()([x, layers.Conv2D(size.channels, 3, padding="same")(x)])


def _squeeze_and_excite(size: Size) -> Layer:
    def layer(x: Any) -> Any:
        y = layers.GlobalAveragePooling2D(keepdims=True)(x)
        y = layers.Conv2D(x.shape[-1], 1, activation="sigmoid")(y)
        return layers.Multiply()([x, y])

    return layer


def _resized(size: Size) -> Layer:
    half = size.side // 2
    return lambda x: layers.Resizing(size.side, size.side)(layers.Resizing(half, half)(x))


_IMAGE_LAYERS: dict[str, Callable[[Size], Layer]] = {
    "convolution": lambda s: layers.Conv2D(s.channels, 3, padding="same", activation="relu"),
    "convolution, strided and dilated": lambda s: (
        lambda x: layers.UpSampling2D()(
            layers.Conv2D(s.channels, 3, dilation_rate=2, padding="same")(
                layers.Conv2D(s.channels, 3, strides=2, padding="same")(x)
            )
        )
    ),
    "grouped convolution": lambda s: layers.Conv2D(s.channels, 3, padding="same", groups=4),
    "depthwise convolution": lambda s: layers.DepthwiseConv2D(3, padding="same"),
    "separable convolution": lambda s: layers.SeparableConv2D(s.channels, 3, padding="same"),
    "transposed convolution": _up_and_down,
    "batch normalization": lambda s: layers.BatchNormalization(),
    "layer normalization": lambda s: layers.LayerNormalization(),
    "group normalization": lambda s: layers.GroupNormalization(4),
    "spectral normalization": lambda s: layers.SpectralNormalization(
        layers.Conv2D(s.channels, 3, padding="same")
    ),
    "unit normalization": lambda s: layers.UnitNormalization(),
    "max pooling": lambda s: layers.MaxPooling2D(3, strides=1, padding="same"),
    "average pooling": lambda s: layers.AveragePooling2D(3, strides=1, padding="same"),
    "up-sampling, bilinear": lambda s: (
        lambda x: layers.MaxPooling2D()(layers.UpSampling2D(interpolation="bilinear")(x))
    ),
    "resizing": _resized,
    "padding and cropping": lambda s: lambda x: layers.Cropping2D(2)(layers.ZeroPadding2D(2)(x)),
    "dropout": lambda s: layers.Dropout(0.3),
    "spatial dropout": lambda s: layers.SpatialDropout2D(0.3),
    "alpha dropout": lambda s: layers.AlphaDropout(0.1),
    "gaussian noise": lambda s: layers.GaussianNoise(0.1),
    "PReLU": lambda s: layers.PReLU(shared_axes=[1, 2]),
    "ELU, SELU and leaky ReLU": lambda s: (
        lambda x: layers.LeakyReLU()(layers.Activation("selu")(layers.ELU()(x)))
    ),
    "softmax": lambda s: layers.Softmax(),
    "concatenated skips": _skip,
    "squeeze and excite": _squeeze_and_excite,
    "residual": lambda s: lambda x: x + layers.Conv2D(x.shape[-1], 3, padding="same")(x),
    "activity regularizer": lambda s: layers.ActivityRegularization(l2=1e-4),
    "dense on pixels": lambda s: layers.Dense(s.channels, activation="tanh"),
}

_AUGMENTATIONS: dict[str, Callable[[Size], Layer]] = {
    "random flips": lambda s: layers.RandomFlip(),
    "random rotations": lambda s: layers.RandomRotation(0.1),
    "random zooms": lambda s: layers.RandomZoom(0.1),
    "random contrast": lambda s: layers.RandomContrast(0.2),
    "random brightness": lambda s: layers.RandomBrightness(0.2, value_range=(-3, 3)),
    "random translations": lambda s: layers.RandomTranslation(0.1, 0.1),
}

_WORD_LAYERS: dict[str, Callable[[Size], Layer]] = {
    "attention": _transformer,
    "grouped-query attention": _grouped_attention,
    "additive attention": lambda s: lambda x: x + layers.AdditiveAttention()([x, x]),
    "dot-product attention": lambda s: lambda x: x + layers.Attention()([x, x]),
    "EinsumDense": lambda s: layers.EinsumDense("abc,cd->abd", (None, 2 * s.channels)),
    "1-D convolution": lambda s: layers.Conv1D(2 * s.channels, 5, padding="causal"),
    "1-D transposed convolution": lambda s: (
        lambda x: layers.Conv1DTranspose(2 * s.channels, 4, strides=2, padding="same")(
            layers.AveragePooling1D(2)(x)
        )
    ),
    "1-D separable convolution": lambda s: layers.SeparableConv1D(
        2 * s.channels, 5, padding="same"
    ),
    "RMS normalization": lambda s: layers.RMSNormalization(),
    "time-distributed dense": lambda s: layers.TimeDistributed(layers.Dense(2 * s.channels)),
}

_RECURRENT: dict[str, Callable[[Size], Layer]] = {
    "LSTM": lambda s: layers.LSTM(2 * s.channels, return_sequences=True),
    "GRU": lambda s: layers.GRU(2 * s.channels, return_sequences=True),
    "simple RNN": lambda s: layers.SimpleRNN(2 * s.channels, return_sequences=True),
    "bidirectional LSTM": lambda s: layers.Bidirectional(
        layers.LSTM(s.channels, return_sequences=True)
    ),
    "LSTM, unrolled": lambda s: (
        lambda x: layers.LSTM(2 * s.channels, return_sequences=True, unroll=True)(x[:, :8])
    ),
    "RNN of cells with dropout": lambda s: layers.RNN(
        layers.GRUCell(2 * s.channels, dropout=0.1), return_sequences=True
    ),
}

_VIDEO_LAYERS: dict[str, Callable[[Size], Layer]] = {
    "3-D convolution": lambda s: layers.Conv3D(s.channels, 3, padding="same"),
    "3-D pooling": lambda s: (
        lambda x: layers.AveragePooling3D(2)(layers.Conv3D(s.channels, 3, padding="same")(x))
    ),
    "convolutional LSTM": lambda s: layers.ConvLSTM2D(
        s.channels // 2, 3, padding="same", return_sequences=True
    ),
}


def _shared(size: Size) -> Called:
    """One network applied to both halves of every image."""
    tower = keras.Sequential(
        [
            layers.Conv2D(size.channels, 3, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.Conv2D(size.channels, 3, padding="same", activation="relu"),
            layers.GlobalAveragePooling2D(),
        ]
    )
    inputs = keras.Input((size.side, size.side, 3))
    left, right = tower(inputs[:, :, : size.side // 2]), tower(inputs[:, :, size.side // 2 :])
    outputs = layers.Dense(10)(ops.abs(left - right))
    return classifier(keras.Model(inputs, outputs), images, size)


def _application(name: str, side: int = 64) -> Callable[[Size], Called]:
    def make(size: Size) -> Called:
        width = max(32, min(side, 2 * size.side))
        smaller = Size(max(2, size.batch // 4), width, size.channels, size.depth)
        model = getattr(keras.applications, name)(
            weights=None, input_shape=(width, width, 3), classes=10, classifier_activation=None
        )
        return classifier(model, images, smaller)

    return make


def kinds() -> list[Kind]:
    """All of them."""
    found = [Kind(name, "layers", of_images(each)) for name, each in _IMAGE_LAYERS.items()]
    found += [Kind(name, "augmentation", of_images(each)) for name, each in _AUGMENTATIONS.items()]
    found += [Kind(name, "text", of_words(each)) for name, each in _WORD_LAYERS.items()]
    found += [
        Kind(name, "recurrent", of_words(each, repeat=False)) for name, each in _RECURRENT.items()
    ]
    found += [Kind(name, "video", of_videos(each)) for name, each in _VIDEO_LAYERS.items()]
    found.append(Kind("shared layers", "layers", _shared))
    found += [
        Kind(name, "networks", _application(name)) for name in ("MobileNetV3Small", "ConvNeXtTiny")
    ]
    return found
