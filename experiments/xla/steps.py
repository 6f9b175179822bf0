"""The train steps that XLA compiles here: models, sizes and budgets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """What is compiled.

    Attributes:
        model: "residual", "recurrent", or one of `ALL_WORKLOADS`.
        batch, side: of the images, or of the texts.
        share: of the plain compiled step's memory, beside variables and inputs.
        optimizer: "sgd" with momentum, or "adam".
        depth_first: without XLA's concurrency-optimized scheduler for CPUs.
        precision: Keras' policy for types.
    """

    model: str
    batch: int
    side: int
    share: float
    optimizer: str = "sgd"
    depth_first: bool = False
    precision: str = "float32"


QUICK = (Row("residual", 4, 24, 0.6),)

ROWS = (
    *(Row("residual", 32, 48, share) for share in (0.33, 0.5, 0.7)),
    *(Row("MobileNetV2", 16, 128, share) for share in (0.40, 0.55, 0.7)),
    *(Row("U-Net", 4, 96, share) for share in (0.5, 0.6, 0.7)),
    *(Row("GPT", 8, 128, share, "adam") for share in (0.55, 0.65, 0.75)),
    *(Row("ResNet50", 8, 96, share) for share in (0.49, 0.6, 0.7)),
    *(Row("recurrent", 16, 48, share) for share in (0.6, 0.7, 0.8)),
    *(Row("EfficientNetB0", 16, 128, share) for share in (0.5, 0.6, 0.7)),
    *(Row("DenseNet121", 8, 64, share) for share in (0.5, 0.6, 0.7)),
    Row("DenseNet121", 4, 64, 0.5),
    Row("residual", 32, 48, 0.65, depth_first=True),
    Row("residual", 16, 48, 0.41, "adam"),
    Row("residual", 16, 48, 0.33, "adam", precision="mixed_bfloat16"),
)


def model_of(row: Row) -> Any:
    """The compiled Keras model of a row, its optimizer slots made."""
    import keras

    from checkmate_tf.workloads.models import ALL_WORKLOADS, compile_model, residual

    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy(row.precision)
    own = {"residual": residual, "recurrent": _recurrent}
    kind = "text" if row.model == "GPT" or row.model in own else "images"  # logits
    build = own.get(row.model) or ALL_WORKLOADS[row.model].build
    model = compile_model(build(row.side), kind)  # type: ignore[arg-type]
    if row.optimizer == "adam":
        model.compile("adam", model.loss, jit_compile=False)
        model.optimizer.build(model.trainable_variables)
    return model


def _recurrent(side: int) -> Any:
    """Convolutions whose rows a recurrent layer reads, in a loop; ten logits."""
    import keras
    from keras import layers

    inputs = x = keras.Input((side, side, 3))
    for _ in range(6):
        x = layers.Conv2D(16, 3, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.GRU(32)(layers.Reshape((side, 16 * side))(x))
    return keras.Model(inputs, layers.Dense(10)(x), name="recurrent")


def data_of(row: Row) -> tuple[Any, Any]:
    """Random inputs and labels for `model_of`."""
    import numpy as np
    import tensorflow as tf

    generator = np.random.default_rng(0)
    if row.model == "GPT":
        text = tf.constant(generator.integers(0, 256, (row.batch, row.side)), tf.int32)
        return text, text
    images = generator.normal(size=(row.batch, row.side, row.side, 3))
    labels = (row.batch, row.side, row.side) if row.model == "U-Net" else (row.batch,)
    return tf.constant(images, tf.float32), tf.constant(generator.integers(0, 10, labels), tf.int32)
