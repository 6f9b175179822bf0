"""The networks of the paper as layer graphs, read off Keras models by its rules.

A node per layer but the input, then the loss, then the backward nodes; costs are
multiply–accumulates, memories fp32 outputs (see `solvers.graph.layer_graphs`). Classifiers are
X"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from solvers import ComputationGraph
from solvers.graph.layer_graphs import Layer, layer_graph, vgg16, vgg19

_CLASSES = 19
_SCENE = (416, 608, 3)


def keras_layer_graph(model: Any, name: str) -> ComputationGraph:
    """The layer graph of a functional Keras model, at batch size 1."""
    layers = [layer for layer in model.layers if type(layer).__name__ != "InputLayer"]
    place = {layer.name: number for number, layer in enumerate(layers)}
    return layer_graph(
        name,
        [
            Layer(
                layer.name,
                cost=_multiply_accumulates(layer),
                elements=math.prod(layer.output.shape[1:]),
                parameters=sum(math.prod(each.shape) for each in layer.trainable_weights),
                inputs=tuple(place[each] for each in _inputs(layer) if each in place),
            )
            for layer in layers
        ],
    )


def _inputs(layer: Any) -> list[str]:
    (node,) = layer._inbound_nodes
    return [each.operation.name for each in node.parent_nodes]


def _multiply_accumulates(layer: Any) -> int:
    kind = type(layer).__name__
    if kind not in ("Conv2D", "DepthwiseConv2D", "Conv2DTranspose", "Dense"):
        return 0
    # Every weight of a kernel is used once at each pixel: of the input, where it is transposed.
    pixels = (layer.input if kind == "Conv2DTranspose" else layer.output).shape[1:-1]
    return int(math.prod(pixels) * math.prod(layer.kernel.shape))


def _application(name: str) -> ComputationGraph:
    import keras

    return keras_layer_graph(getattr(keras.applications, name)(weights=None), name)


def _convolution(x: Any, filters: int, size: int = 3) -> Any:
    from keras import layers

    x = layers.ZeroPadding2D(size // 2)(x)
    return layers.BatchNormalization()(layers.Conv2D(filters, size)(x))


def _plain_encoder(x: Any) -> list[Any]:
    """Five levels, each half as large as the one before."""
    from keras import layers

    levels = []
    for filters in (64, 128, 256, 256, 256):
        x = layers.MaxPooling2D()(layers.Activation("relu")(_convolution(x, filters)))
        levels.append(x)
    return levels


def _vgg_encoder(x: Any) -> list[Any]:
    """The five blocks of VGG16, each half as large as the one before."""
    from keras import layers

    levels = []
    for filters, convolutions in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(convolutions):
            x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling2D()(x)
        levels.append(x)
    return levels


def _finish(inputs: Any, x: Any, name: str) -> ComputationGraph:
    import keras
    from keras import layers

    x = layers.Reshape((-1, _CLASSES))(x)
    return keras_layer_graph(keras.Model(inputs, layers.Softmax()(x)), name)


def segnet() -> ComputationGraph:
    """An encoder and a decoder without connections between them (Badrinarayanan et al., 2017)."""
    import keras
    from keras import layers

    inputs = keras.Input(_SCENE)
    x = _convolution(_plain_encoder(inputs)[3], 512)
    for filters in (256, 128, 64):
        x = _convolution(layers.UpSampling2D()(x), filters)
    return _finish(inputs, layers.Conv2D(_CLASSES, 3, padding="same")(x), "SegNet")


def unet() -> ComputationGraph:
    """VGG16's levels joined to the decoder's (Ronneberger et al., 2015)."""
    import keras
    from keras import layers

    inputs = keras.Input(_SCENE)
    first, second, third, fourth, _ = _vgg_encoder(inputs)
    x = _convolution(fourth, 512)
    for filters, level in ((256, third), (128, second), (64, first)):
        x = layers.Concatenate()([layers.UpSampling2D()(x), level])
        x = _convolution(x, filters)
    return _finish(inputs, layers.Conv2D(_CLASSES, 3, padding="same")(x), "U-Net")


def fcn8(encoder: Callable[[Any], list[Any]] = _plain_encoder) -> ComputationGraph:
    """Predictions of three levels, added up (Long et al., 2015)."""
    import keras
    from keras import layers

    inputs = keras.Input(_SCENE)
    _, _, third, fourth, x = encoder(inputs)
    for size in (7, 1):
        x = layers.Conv2D(4096, size, padding="same", activation="relu")(x)
        x = layers.Dropout(0.5)(x)
    x = layers.Conv2D(_CLASSES, 1)(x)
    for level in (fourth, third):
        x = layers.Conv2DTranspose(_CLASSES, 4, 2, use_bias=False)(x)
        level = layers.Conv2D(_CLASSES, 1)(level)
        width, height = x.shape[2] - level.shape[2], x.shape[1] - level.shape[1]
        x = layers.Cropping2D(((0, 0), (0, width)))(x)
        x = layers.Cropping2D(((0, height), (0, 0)))(x)
        x = layers.Add()([x, level])
    x = layers.Conv2DTranspose(_CLASSES, 16, 8, use_bias=False)(x)
    return _finish(inputs, x, "FCN8")


def fcn8_vgg() -> ComputationGraph:
    """FCN8 on the convolutions of VGG16."""
    return replace(fcn8(_vgg_encoder), name="FCN8-VGG")


NETWORKS: dict[str, Callable[[], ComputationGraph]] = {
    "VGG16": vgg16,
    "VGG19": vgg19,
    "FCN8": fcn8,
    "FCN8-VGG": fcn8_vgg,
    "SegNet": segnet,
    "U-Net": unet,
    "MobileNet": lambda: _application("MobileNet"),
    "ResNet50": lambda: _application("ResNet50"),
    "DenseNet201": lambda: _application("DenseNet201"),
}
