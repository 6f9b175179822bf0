"""The networks that are trained here: six kinds, and those of Feng and Huang's table.

Random weights, no downloads. Keras is imported when a network is built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from checkmate_tf.workloads.models import ALL_WORKLOADS, Workload

_CLASSES = 1000


def _application(name: str) -> Callable[[int], Any]:
    def build(side: int) -> Any:
        import keras

        model = getattr(keras.applications, name)
        return model(weights=None, input_shape=(side, side, 3), classes=_CLASSES)

    return build


def tiny(side: int) -> Any:
    """Six convolutions, a normalization in the middle: for the small forms."""
    import keras
    from keras import layers

    x = inputs = keras.Input((side, side, 3))
    for place in range(6):
        x = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
        if place == 2:
            x = layers.BatchNormalization()(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(10, activation="softmax")(x), name="tiny")


def resnext(side: int) -> Any:
    """Eight residual blocks with convolutions in 16 groups, as in ResNeXt (Xie et al., 2017)."""
    import keras
    from keras import layers

    def convolution(x: Any, filters: int, size: int, **options: Any) -> Any:
        x = layers.Conv2D(filters, size, padding="same", use_bias=False, **options)(x)
        return layers.BatchNormalization()(x)

    def block(x: Any, filters: int, strides: int) -> Any:
        y = layers.ReLU()(convolution(x, filters, 1))
        y = layers.ReLU()(convolution(y, filters, 3, strides=strides, groups=16))
        y = convolution(y, 2 * filters, 1)
        if y.shape != x.shape:
            x = convolution(x, 2 * filters, 1, strides=strides)
        return layers.ReLU()(layers.Add()([x, y]))

    inputs = keras.Input((side, side, 3))
    x = layers.ReLU()(convolution(inputs, 32, 3, strides=2))
    for filters, strides in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1)):
        x = block(x, filters, strides)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(10, activation="softmax")(x), name="resnext")


def alexnet(side: int) -> Any:
    """AlexNet in one column (Krizhevsky, 2014), with dropout."""
    import keras
    from keras import layers

    x = inputs = keras.Input((side, side, 3))
    for filters, size, strides, pooled in (
        (64, 11, 4, True), (192, 5, 1, True), (384, 3, 1, False), (256, 3, 1, False),
        (256, 3, 1, True),
    ):  # fmt: skip
        x = layers.Conv2D(filters, size, strides, padding="same", activation="relu")(x)
        if pooled:
            x = layers.MaxPooling2D(3, 2)(x)
    x = layers.Flatten()(x)
    for _ in range(2):
        x = layers.Dense(4096, activation="relu")(layers.Dropout(0.5)(x))
    return keras.Model(inputs, layers.Dense(_CLASSES, activation="softmax")(x), name="alexnet")


def _vgg(*convolutions: int) -> Callable[[int], Any]:
    """A VGG with so many convolutions at each of five scales (Simonyan and Zisserman, 2015)."""

    def build(side: int) -> Any:
        import keras
        from keras import layers

        x = inputs = keras.Input((side, side, 3))
        for filters, count in zip((64, 128, 256, 512, 512), convolutions, strict=True):
            for _ in range(count):
                x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
            x = layers.MaxPooling2D()(x)
        x = layers.Flatten()(x)
        for _ in range(2):
            x = layers.Dense(4096, activation="relu")(x)
        return keras.Model(inputs, layers.Dense(_CLASSES, activation="softmax")(x), name="vgg")

    return build


def _basic_resnet(*blocks: int) -> Callable[[int], Any]:
    """A ResNet of blocks of two 3×3 convolutions at four scales (He et al., 2016)."""

    def build(side: int) -> Any:
        import keras
        from keras import layers

        def convolution(x: Any, filters: int, size: int, strides: int = 1) -> Any:
            x = layers.Conv2D(filters, size, strides, padding="same", use_bias=False)(x)
            return layers.BatchNormalization()(x)

        x = inputs = keras.Input((side, side, 3))
        x = layers.ReLU()(convolution(x, 64, 7, 2))
        x = layers.MaxPooling2D(3, 2, padding="same")(x)
        for scale, count in enumerate(blocks):
            for place in range(count):
                strides = 2 if scale and not place else 1
                y = layers.ReLU()(convolution(x, 64 * 2**scale, 3, strides))
                y = convolution(y, 64 * 2**scale, 3)
                if strides > 1:
                    x = convolution(x, 64 * 2**scale, 1, strides)
                x = layers.ReLU()(layers.Add()([x, y]))
        x = layers.GlobalAveragePooling2D()(x)
        return keras.Model(inputs, layers.Dense(_CLASSES, activation="softmax")(x), name="resnet")

    return build


def densenet161(side: int) -> Any:
    """DenseNet161 (Huang et al., 2017): growth 48, which the Keras application does not have."""
    import keras
    from keras import layers

    def convolution(x: Any, filters: int, size: int) -> Any:
        x = layers.ReLU()(layers.BatchNormalization()(x))
        return layers.Conv2D(filters, size, padding="same", use_bias=False)(x)

    inputs = keras.Input((side, side, 3))
    x = layers.Conv2D(96, 7, 2, padding="same", use_bias=False)(inputs)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.MaxPooling2D(3, 2, padding="same")(x)
    for scale, count in enumerate((6, 12, 36, 24)):
        if scale:
            x = layers.AveragePooling2D(2)(convolution(x, x.shape[-1] // 2, 1))
        for _ in range(count):
            x = layers.Concatenate()([x, convolution(convolution(x, 192, 1), 48, 3)])
    x = layers.GlobalAveragePooling2D()(layers.ReLU()(layers.BatchNormalization()(x)))
    return keras.Model(inputs, layers.Dense(_CLASSES, activation="softmax")(x), name="densenet161")


KINDS = {name: ALL_WORKLOADS[name] for name in ("U-Net", "MobileNetV2", "GPT", "ResNet50", "VGG16")}
KINDS["grouped"] = Workload(resnext, 4, 48)
"""A network of every kind, at the sizes at which they are trained under budgets."""

PUBLISHED = {
    "AlexNet": Workload(alexnet, 32, 224),
    "VGG11": Workload(_vgg(1, 1, 2, 2, 2), 16, 224),
    "VGG13": Workload(_vgg(2, 2, 2, 2, 2), 16, 224),
    "VGG16 224": Workload(_application("VGG16"), 16, 224),
    "VGG19": Workload(_application("VGG19"), 16, 224),
    "ResNet18": Workload(_basic_resnet(2, 2, 2, 2), 8, 224),
    "ResNet34": Workload(_basic_resnet(3, 4, 6, 3), 8, 224),
    "ResNet50 224": Workload(_application("ResNet50"), 4, 224),
    "ResNet101": Workload(_application("ResNet101"), 4, 224),
    "ResNet152": Workload(_application("ResNet152"), 4, 224),
    "DenseNet121": Workload(_application("DenseNet121"), 4, 224),
    "DenseNet161": Workload(densenet161, 4, 224),
    "DenseNet169": Workload(_application("DenseNet169"), 4, 224),
    "DenseNet201": Workload(_application("DenseNet201"), 4, 224),
    "Inception v3": Workload(_application("InceptionV3"), 4, 300),
}
"""Those of Feng and Huang (2021) that train here, at batches that two cores have patience for."""

TRAINED = {"tiny": Workload(tiny, 8, 32), **KINDS, **PUBLISHED}
"""All, by name."""
