"""The models that the experiments train: Keras 3, random weights, no downloads.

Keras is imported when a model is built, so that a table of trials needs no TensorFlow itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

Kind = Literal["images", "pixels", "text"]


@dataclass(frozen=True)
class Workload:
    """A model and its input.

    Attributes:
        build: makes the model for an image side, or a length of text.
        batch, side: the images are batch × side × side × 3, the texts batch × side bytes.
        kind: "images" with a label each, "pixels" with a label each, or "text" that is continued.
        optimizer: "sgd" with momentum, or "adam".
    """

    build: Callable[[int], Any]
    batch: int
    side: int
    kind: Kind = "images"
    optimizer: Literal["sgd", "adam"] = "sgd"


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


def residual(side: int, blocks: int = 9, width: int = 16) -> Any:
    """Residual blocks of two convolutions at one resolution (He et al., 2016); ten logits."""
    import keras
    from keras import layers

    def normalized(x: Any) -> Any:
        x = layers.Conv2D(width, 3, padding="same", use_bias=False)(x)
        return layers.BatchNormalization()(x)

    inputs = keras.Input((side, side, 3))
    x = layers.ReLU()(normalized(inputs))
    for _ in range(blocks):
        y = normalized(layers.ReLU()(normalized(x)))
        x = layers.ReLU()(layers.Add()([x, y]))
    x = layers.Dense(10)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(inputs, x, name="residual")


def gpt(
    length: int,
    words: int = 256,
    blocks: int = 6,
    width: int = 256,
    heads: int = 4,
    dropout: float = 0.1,
) -> Any:
    """A decoder of transformer blocks over `length` words (Radford et al., 2019); its logits."""
    import keras
    from keras import layers

    inputs = keras.Input((length,), dtype="int32")
    positions = keras.ops.arange(length)
    x = layers.Embedding(words, width)(inputs) + layers.Embedding(length, width)(positions)
    for _ in range(blocks):
        y = layers.LayerNormalization()(x)
        y = layers.MultiHeadAttention(heads, width // heads)(y, y, use_causal_mask=True)
        x = x + layers.Dropout(dropout)(y)
        y = layers.Dense(4 * width, activation="gelu")(layers.LayerNormalization()(x))
        x = x + layers.Dropout(dropout)(layers.Dense(width)(y))
    outputs = layers.Dense(words)(layers.LayerNormalization()(x))
    return keras.Model(inputs, outputs, name="gpt")


WORKLOADS = {
    "MobileNetV2": Workload(_application("MobileNetV2"), 16, 128),
    "VGG16": Workload(_application("VGG16"), 8, 160),
    "ResNet50": Workload(_application("ResNet50"), 16, 128),
    "U-Net": Workload(unet, 4, 192, "pixels"),
}
"""The rows of `experiments.cost_models`."""

ALL_WORKLOADS = {
    **WORKLOADS,
    "DenseNet121": Workload(_application("DenseNet121"), 8, 128),
    "EfficientNetB0": Workload(_application("EfficientNetB0"), 8, 128),
    "GPT": Workload(gpt, 8, 256, "text"),
}
"""The rows of `experiments.predictions`, `step_benchmark` and `step_times`."""

LARGE_WORKLOADS = {
    "GPT-24": Workload(partial(gpt, blocks=24), 4, 128, kind="text", optimizer="adam"),
    "DenseNet201": Workload(_application("DenseNet201"), 4, 64, optimizer="adam"),
}
"""Steps of tens of thousands of operations, for `experiments.readiness`."""


def compiled(workload: Workload, side: int | None = None) -> Any:
    """The workload's model, compiled, its optimizer slots made."""
    model = workload.build(side or workload.side)
    return compile_model(model, workload.kind, workload.optimizer)


def compile_model(
    model: Any, kind: Kind, optimizer: Literal["sgd", "adam"] = "sgd", **options: Any
) -> Any:
    """Compile a model that has its weights; the model.

    Args:
        model: a Keras model.
        kind: of its data; the outputs are logits for "text", probabilities else.
        optimizer: "sgd" with momentum, or "adam".
        options: more of the optimizer, like `gradient_accumulation_steps=2`.
    """
    import keras

    if optimizer == "adam":
        made = keras.optimizers.Adam(**options)
    else:
        made = keras.optimizers.SGD(0.01, momentum=0.9, **options)
    model.compile(
        optimizer=made,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=kind == "text"),
        metrics=["accuracy"],
        jit_compile=False,
    )
    model.optimizer.build(model.trainable_variables)
    return model
