"""What is trained: models at sizes that people train, and what is looked at. No TensorFlow here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from checkmate_tf.workloads.models import gpt, unet

LABELS = 10
WORDS = 8192


def _application(name: str) -> Callable[[int], Any]:
    def build(side: int) -> Any:
        import keras

        made = getattr(keras.applications, name)
        return made(weights=None, input_shape=(side, side, 3), classes=1000)

    return build


def vit(side: int, blocks: int = 12, width: int = 384, heads: int = 6) -> Any:
    """A vision transformer on patches of 16 × 16 (Dosovitskiy et al., 2021: ViT-S)."""
    import keras
    from keras import layers

    inputs = keras.Input((side, side, 3))
    count = (side // 16) ** 2
    x = layers.Reshape((count, width))(layers.Conv2D(width, 16, strides=16)(inputs))
    x = x + layers.Embedding(count, width)(keras.ops.arange(count))
    for _ in range(blocks):
        y = layers.LayerNormalization()(x)
        y = layers.MultiHeadAttention(heads, width // heads)(y, y)
        x = x + layers.Dropout(0.1)(y)
        y = layers.Dense(4 * width, activation="gelu")(layers.LayerNormalization()(x))
        x = x + layers.Dropout(0.1)(layers.Dense(width)(y))
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    return keras.Model(inputs, layers.Dense(1000, activation="softmax", dtype="float32")(x))


@dataclass(frozen=True)
class Model:
    """How a model is built, and its data.

    Attributes:
        build: makes it for an image side, or a length of text.
        kind: of its data: "images" or "pixels" with a label each, or "text" that is continued.
    """

    build: Callable[[int], Any]
    kind: Literal["images", "pixels", "text"] = "images"


_APPLICATIONS = (
    "ResNet50", "MobileNetV2", "DenseNet121", "Xception", "EfficientNetB0", "InceptionV3",
    "ConvNeXtTiny", "EfficientNetB2",
)  # fmt: skip

MODELS = {name: Model(_application(name)) for name in _APPLICATIONS} | {
    "U-Net": Model(unet, "pixels"),
    "ViT": Model(vit),
    "GPT": Model(partial(gpt, words=WORDS, blocks=12, width=768, heads=12), "text"),
}


@dataclass(frozen=True)
class Case:
    """One row.

    Attributes:
        model: a name in `MODELS`.
        batch, side: of its data; the side of images, or the length of texts.
        share: the budget, of what the plain step adds to what is held.
        xla: whether Keras' default, XLA, stays on.
        look: at "steps" (peaks, times), at "bits" (with deterministic kernels), or at a "limit" of
            the allocator between the budget and the plain step's peak.
        precision: a policy of Keras.
    """

    model: str
    batch: int
    side: int
    share: float = 0.5
    xla: bool = False
    look: Literal["steps", "bits", "limit"] = "steps"
    precision: str = "float32"

    def scaled(self, scale: float) -> Case:
        """The same with a smaller or a larger batch."""
        return replace(self, batch=max(1, round(scale * self.batch)))

    def __str__(self) -> str:
        """Its name in tables.

        Example:
            >>> print(Case("ResNet50", 128, 224, precision="mixed_bfloat16"))
            ResNet50 128×224², bfloat16
        """
        size = f"{self.batch}×{self.side}" + ("" if self.model == "GPT" else "²")
        precision = "" if self.precision == "float32" else f", {self.precision[len('mixed_') :]}"
        return f"{self.model} {size}{precision}"


_COMPILED = [
    Case("U-Net", 64, 256),
    Case("ResNet50", 64, 224),
    Case("MobileNetV2", 64, 224),
    Case("Xception", 32, 299),
    Case("InceptionV3", 32, 299),
    Case("EfficientNetB0", 64, 224),
    Case("DenseNet121", 64, 224),
    Case("ViT", 64, 224),
    Case("GPT", 16, 512, 0.4),
]

CASES = [
    *(replace(each, xla=True) for each in _COMPILED),
    Case("ResNet50", 256, 224),
    Case("ResNet50", 128, 224, precision="mixed_bfloat16"),
    Case("ResNet50", 8, 96),
    Case("MobileNetV2", 128, 224),
    Case("DenseNet121", 64, 224, 0.4),
    Case("U-Net", 64, 256),
    Case("Xception", 32, 299),
    Case("EfficientNetB0", 64, 224),
    Case("ViT", 64, 224),
    Case("GPT", 16, 512, 0.4),
    Case("ResNet50", 16, 224, 0.6, look="bits"),
    Case("GPT", 8, 256, 0.6, look="bits"),
    Case("MobileNetV2", 16, 224, 0.6, xla=True, look="bits"),
    Case("GPT", 8, 256, 0.6, xla=True, look="bits"),
    Case("ResNet50", 256, 224, look="limit"),
    Case("ResNet50", 64, 224, xla=True, look="limit"),
]
