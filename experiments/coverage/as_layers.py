"""Kinds of models made of models: exported, shared, nested, and rematerialized by Keras itself."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from keras import layers

from experiments.coverage.kind import Called, Kind, Size
from experiments.coverage.layers import classifier, images
from experiments.coverage.loops import batches, cross_entropy, descend


def _tower(size: Size, *more: Any) -> Any:
    return keras.Sequential(
        [
            keras.Input((size.side, size.side, 3)),
            layers.Conv2D(size.channels, 3, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.Conv2D(size.channels, 3, padding="same", activation="swish"),
            *more,
        ]
    )


def _head(size: Size) -> Any:
    return keras.Sequential(
        [
            keras.Input((size.side, size.side, size.channels)),
            layers.Conv2D(size.channels, 3, padding="same", activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10),
        ]
    )


def _exported(size: Size) -> Called:
    """`model.export()`, loaded again: its features feed a head that learns."""
    with tempfile.TemporaryDirectory() as folder:
        _tower(size).export(folder, verbose=False)
        features = tf.saved_model.load(folder)
    head = _head(size)

    def step(x: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, head(features.serve(x), training=True))
        descend(head.trainable_variables, tape.gradient(loss, head.trainable_variables))
        return loss

    return Called(step, batches(size), [head, features])


def _exported_layer(size: Size) -> Called:
    """The same by `TFSMLayer`, and it learns too."""
    archive = keras.export.ExportArchive()
    tower = _tower(size)
    archive.track(tower)
    spec = [keras.InputSpec(shape=(None, size.side, size.side, 3), dtype="float32")]
    archive.add_endpoint("serve", lambda x: tower(x, training=False), input_signature=spec)
    archive.add_endpoint("learn", lambda x: tower(x, training=True), input_signature=spec)
    with tempfile.TemporaryDirectory() as folder:
        archive.write_out(folder, verbose=False)
        layer = layers.TFSMLayer(folder, call_endpoint="serve", call_training_endpoint="learn")
    inputs = keras.Input((size.side, size.side, 3))
    return classifier(keras.Model(inputs, _head(size)(layer(inputs))), images, size)


class _Words(tf.Module):  # type: ignore[misc]
    """A module with two signatures that share a table."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.kernel = tf.Variable(tf.random.stateless_normal((3, 3, 3, channels), (1, 2)) / 4)
        self.back = tf.Variable(tf.random.stateless_normal((channels, 3), (3, 4)) / 4)

    @tf.function  # type: ignore[untyped-decorator]
    def encode(self, x: Any) -> Any:
        """Images to features."""
        return {"features": tf.nn.relu(tf.nn.conv2d(x, self.kernel, 1, "SAME"))}

    @tf.function  # type: ignore[untyped-decorator]
    def decode(self, x: Any) -> Any:
        """Features to images."""
        return {"images": tf.einsum("bijc,cd->bijd", tf.tanh(x), self.back)}


def _signatures(size: Size) -> Called:
    """A SavedModel with two signatures, both used, both learning."""
    module = _Words(size.channels)
    shape = (None, size.side, size.side)
    signatures = {
        "encode": module.encode.get_concrete_function(tf.TensorSpec((*shape, 3))),
        "decode": module.decode.get_concrete_function(tf.TensorSpec((*shape, size.channels))),
    }
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures=signatures)
        loaded = tf.saved_model.load(folder)
    encode, decode = loaded.signatures["encode"], loaded.signatures["decode"]

    def step(x: Any, labels: Any) -> Any:
        variables = [loaded.kernel, loaded.back]
        with tf.GradientTape() as tape:
            features = encode(x=x)["features"]
            again = decode(x=features)["images"]
            again = again + decode(x=tf.nn.max_pool2d(features, 3, 1, "SAME"))["images"]
            loss = tf.reduce_mean((again - x) ** 2)
        descend(variables, tape.gradient(loss, variables))
        return loss

    return Called(step, batches(size), [[loaded.kernel, loaded.back]])


def _shared_everywhere(size: Size) -> Called:
    """Models inside models; one of them at three places, one layer in two of them."""
    norm = layers.BatchNormalization()
    mixer = layers.Conv2D(size.channels, 3, padding="same")
    inner_inputs = keras.Input((None, None, size.channels))
    inner = keras.Model(inner_inputs, layers.ReLU()(norm(mixer(inner_inputs))), name="inner")
    middle_inputs = keras.Input((None, None, size.channels))
    middle = keras.Model(
        middle_inputs, layers.Add()([inner(inner(middle_inputs)), middle_inputs]), name="middle"
    )
    x = inputs = keras.Input((size.side, size.side, 3))
    x = layers.Conv2D(size.channels, 3, padding="same")(x)
    x = middle(inner(middle(mixer(x))))
    outputs = layers.Dense(10)(layers.GlobalMaxPooling2D()(x))
    return classifier(keras.Model(inputs, outputs), images, size)


def _scope(**options: Any) -> Callable[[Size], Called]:
    """Layers of a functional model that were made under `keras.RematScope`."""

    def make(size: Size) -> Called:
        x = inputs = keras.Input((size.side, size.side, 3))
        x = layers.Conv2D(size.channels, 3, padding="same")(x)
        with keras.RematScope(**options):
            for number in range(size.depth):
                x = layers.Conv2D(
                    size.channels, 3, padding="same", activation="swish", name=f"mixer_{number}"
                )(x)
                x = layers.Dense(size.channels, activation="tanh")(x)
        x = layers.Dense(10)(layers.GlobalAveragePooling2D()(x))
        return classifier(keras.Model(inputs, x), images, size)

    return make


class _Block(layers.Layer):  # type: ignore[misc]
    """A layer whose call is rematerialized by `keras.remat`."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = layers.LayerNormalization()
        self.first = layers.Dense(4 * channels, activation="gelu")
        self.second = layers.Dense(channels)

    def build(self, shape: Any) -> None:
        self.norm.build(shape)
        self.first.build(shape)
        self.second.build((*shape[:-1], self.first.units))
        self.again = keras.remat(lambda x: self.second(self.first(self.norm(x))))

    def call(self, x: Any) -> Any:
        return x + self.again(x)


def _remat_layers(size: Size) -> Called:
    """Blocks that Keras rematerializes, in a functional model."""
    x = inputs = keras.Input((size.side, size.side, 3))
    x = layers.Conv2D(size.channels, 4, strides=2, padding="same")(x)
    for _ in range(size.depth):
        x = _Block(size.channels)(x)
    x = layers.Dense(10)(layers.GlobalAveragePooling2D()(x))
    return classifier(keras.Model(inputs, x), images, size)


_MODELS: dict[str, Callable[[Size], Called]] = {
    "exported model as features": _exported,
    "exported model that learns": _exported_layer,
    "SavedModel with two signatures": _signatures,
    "models in models, shared": _shared_everywhere,
    "keras.RematScope, activations": _scope(mode="activations"),
    "keras.RematScope, listed layers": _scope(mode="list_of_layers", layer_names=["mixer_1"]),
    "layers that Keras rematerializes": _remat_layers,
}


def kinds() -> list[Kind]:
    """All of them."""
    return [Kind(name, "models", make) for name, make in _MODELS.items()]
