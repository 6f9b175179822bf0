"""The models that the experiments train: Keras 3, random weights, no downloads.

Keras is imported when a model is built, so that a table of trials needs no TensorFlow itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Workload:
    """A model, its input, and the share of activation memory that it must train within.

    Attributes:
        build: makes the model for an image side.
        batch, side: the images are batch × side × side × 3.
        share: budget = resident + share × (plain step's peak − resident).
        slowdown: most step time allowed, as a multiple of the plain step's.
        dense: the labels are a class per pixel.
    """

    build: Callable[[int], Any]
    batch: int
    side: int
    share: float
    slowdown: float
    dense: bool = False


def _application(name: str) -> Callable[[int], Any]:
    def build(side: int) -> Any:
        import keras

        model = getattr(keras.applications, name)
        return model(weights=None, input_shape=(side, side, 3), classes=10)

    return build


def unet(side: int) -> Any:
    """A U-Net of four scales with batch normalization, skips by concatenation, ten classes."""
    import keras
    from keras import layers

    def block(x: Any, filters: int) -> Any:
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
            x = layers.Activation("relu")(layers.BatchNormalization()(x))
        return x

    inputs = x = keras.Input((side, side, 3))
    skips = []
    for filters in (16, 32, 64):
        x = block(x, filters)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = block(x, 128)
    for filters, skip in zip((64, 32, 16), reversed(skips), strict=True):
        x = layers.Conv2DTranspose(filters, 2, strides=2)(x)
        x = block(layers.Concatenate()([x, skip]), filters)
    return keras.Model(inputs, layers.Conv2D(10, 1, activation="softmax")(x), name="unet")


WORKLOADS = {
    "MobileNetV2": Workload(_application("MobileNetV2"), 16, 128, 0.50, 1.2),
    "VGG16": Workload(_application("VGG16"), 8, 160, 0.65, 1.2),
    "ResNet50": Workload(_application("ResNet50"), 16, 128, 0.50, 1.2),
    "U-Net": Workload(unet, 4, 192, 0.55, 1.25, dense=True),
}
"""The four rows of `experiments.step_benchmark`."""


def compiled(workload: Workload, side: int | None = None) -> Any:
    """The workload's model, compiled with SGD with momentum, its optimizer slots made."""
    import keras

    model = workload.build(side or workload.side)
    model.compile(
        optimizer=keras.optimizers.SGD(0.01, momentum=0.9),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
        jit_compile=False,
    )
    model.optimizer.build(model.trainable_variables)
    return model
