"""Programs that learn to tell images apart."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras import layers, ops

from experiments.programs.program import Program, Script, examples, images, integers


class Patches(layers.Layer):  # type: ignore[misc]
    """Cuts images into squares."""

    def __init__(self, patch_size: int) -> None:
        super().__init__()
        self.patch_size = patch_size

    def call(self, images: Any) -> Any:
        """A row of numbers for each square."""
        batch_size, height, width, channels = ops.shape(images)
        patches = ops.image.extract_patches(images, size=self.patch_size)
        rows, columns = height // self.patch_size, width // self.patch_size
        size = self.patch_size * self.patch_size * channels
        return ops.reshape(patches, (batch_size, rows * columns, size))


class PatchEncoder(layers.Layer):  # type: ignore[misc]
    """Projects squares, and adds where they are."""

    def __init__(self, num_patches: int, projection_dim: int) -> None:
        super().__init__()
        self.num_patches = num_patches
        self.projection = layers.Dense(projection_dim)
        self.position_embedding = layers.Embedding(num_patches, projection_dim)

    def call(self, patch: Any) -> Any:
        """A word for each square."""
        positions = ops.expand_dims(ops.arange(0, self.num_patches), axis=0)
        return self.projection(patch) + self.position_embedding(positions)


def _vision_transformer(batch: int) -> Script:
    side, patch_size, width, blocks = 72, 6, 64, 4
    x_train = 255 * images(examples(batch), 32)
    augmentation = keras.Sequential(
        [
            layers.Normalization(),
            layers.Resizing(side, side),
            layers.RandomFlip("horizontal"),
            layers.RandomRotation(factor=0.02),
            layers.RandomZoom(height_factor=0.2, width_factor=0.2),
        ]
    )
    augmentation.layers[0].adapt(x_train)
    inputs = keras.Input((32, 32, 3))
    patches = Patches(patch_size)(augmentation(inputs))
    encoded = PatchEncoder((side // patch_size) ** 2, width)(patches)
    for _ in range(blocks):
        x1 = layers.LayerNormalization(epsilon=1e-6)(encoded)
        attention = layers.MultiHeadAttention(num_heads=4, key_dim=width, dropout=0.1)(x1, x1)
        x2 = layers.Add()([attention, encoded])
        x3 = layers.LayerNormalization(epsilon=1e-6)(x2)
        for units in (2 * width, width):
            x3 = layers.Dropout(0.1)(layers.Dense(units, activation=keras.activations.gelu)(x3))
        encoded = layers.Add()([x3, x2])
    x = layers.Flatten()(layers.LayerNormalization(epsilon=1e-6)(encoded))
    x = layers.Dropout(0.5)(x)
    for units in (256, 128):
        x = layers.Dropout(0.5)(layers.Dense(units, activation=keras.activations.gelu)(x))
    model = keras.Model(inputs, layers.Dense(100)(x))
    model.compile(
        optimizer=keras.optimizers.AdamW(learning_rate=0.001, weight_decay=0.0001),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[
            keras.metrics.SparseCategoricalAccuracy(name="accuracy"),
            keras.metrics.SparseTopKCategoricalAccuracy(5, name="top-5-accuracy"),
        ],
    )
    options = {"batch_size": batch, "validation_split": 0.1}
    return Script(model, (x_train, integers(len(x_train), 100)), options)


def _fine_tuning(batch: int) -> Script:
    side, classes = 96, 20
    inputs = keras.Input((side, side, 3))
    network = keras.applications.EfficientNetB0(
        include_top=False, input_tensor=inputs, weights=None
    )
    network.trainable = False
    x = layers.GlobalAveragePooling2D(name="avg_pool")(network.output)
    x = layers.Dropout(0.2, name="top_dropout")(layers.BatchNormalization()(x))
    model = keras.Model(inputs, layers.Dense(classes, activation="softmax", name="pred")(x))
    for layer in model.layers[-60:]:  # what the second half of the page does
        if not isinstance(layer, layers.BatchNormalization):
            layer.trainable = True
    model.compile(
        optimizer=keras.optimizers.Adam(learning_rate=1e-5),
        loss="categorical_crossentropy",
        metrics=["accuracy"],
    )
    augment = [
        layers.RandomRotation(factor=0.15),
        layers.RandomTranslation(height_factor=0.1, width_factor=0.1),
        layers.RandomFlip(),
        layers.RandomContrast(factor=0.1),
    ]

    def preprocess(images: Any, labels: Any) -> Any:
        for layer in augment:
            images = layer(images)
        return images, tf.one_hot(labels, classes)

    count = examples(batch)
    data = (
        tf.data.Dataset.from_tensor_slices((255 * images(count, side), integers(count, classes)))
        .batch(batch)
        .map(preprocess, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
    )
    return Script(model, (data,), {})


def _transfer_learning(batch: int) -> Script:
    side, count = 96, examples(batch)
    inputs = keras.Input((side, side, 3))
    x = layers.RandomRotation(0.1)(layers.RandomFlip("horizontal")(inputs))
    x = layers.Rescaling(scale=1 / 127.5, offset=-1)(x)
    x = keras.applications.MobileNetV2((side, side, 3), include_top=False, weights=None)(x)
    x = layers.Dropout(0.2)(layers.GlobalAveragePooling2D()(x))
    model = keras.Model(inputs, layers.Dense(1)(x))
    model.compile(
        optimizer=keras.optimizers.Adam(),
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[keras.metrics.BinaryAccuracy()],
    )
    data = tf.data.Dataset.from_tensor_slices((255 * images(count, side), integers(count, 2)))
    data = data.batch(batch).cache().prefetch(tf.data.AUTOTUNE)
    return Script(model, (data,), {})


PROGRAMS = (
    Program(
        "vision transformer",
        "examples/vision/image_classification_with_vision_transformer",
        16,
        _vision_transformer,
    ),
    Program(
        "fine-tuned EfficientNet",
        "examples/vision/image_classification_efficientnet_fine_tuning",
        16,
        _fine_tuning,
    ),
    Program("MobileNetV2 on a data set", "guides/transfer_learning", 16, _transfer_learning),
)
