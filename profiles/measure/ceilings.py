"""A handful of operations whose times tell a device's ceilings and slow kinds, measured once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import tensorflow as tf

from profiles.devices import device_name
from profiles.measure.surveys import survey
from profiles.operation import Operation, TensorSize
from profiles.profiled import ProfiledCosts
from profiles.roofline import device_ceilings
from profiles.store import known_profile

_TYPE = ("T", "float32")
_WINDOW = (
    _TYPE,
    ("data_format", "NHWC"),
    ("dilations", (1, 1, 1, 1)),
    ("explicit_paddings", ()),
    ("padding", "SAME"),
    ("strides", (1, 1, 1, 1)),
    ("use_cudnn_on_gpu", True),
)
_DEPTHWISE_WINDOW = tuple(each for each in _WINDOW if each[0] != "use_cudnn_on_gpu")
_POOLING = (
    _TYPE,
    ("data_format", "NHWC"),
    ("explicit_paddings", ()),
    ("ksize", (1, 2, 2, 1)),
    ("padding", "VALID"),
    ("strides", (1, 2, 2, 1)),
)
_FEW = TensorSize("float32", (256,))
_SHAPE = TensorSize("int32", (4,))
_CHANNELS = TensorSize("float32", (1, 1, 1, 64))
_TILED = (56, 56, 1)

_MEMORY = 2 << 30
"""Bytes of a GPU's memory that the largest probes take, with their workspaces."""


def probes(device: str) -> tuple[Operation, ...]:
    """The operations whose times tell a device's ceilings, and which kinds stay below them.

    Those of a CPU are small enough to be measured in a second or two.

    Example:
        >>> sum(each.type == "Relu" for each in probes("CPU:0"))
        2
    """
    if not device.startswith("GPU"):
        return _everywhere(batch=8, side=1024)
    large, small = gpu_probes(), gpu_probes(batch=64, side=2048)
    # The question below is asked once in a device's life: what it holds counts as memory in use.
    known = known_profile(device_name(device), tf.__version__).seconds.keys()
    for ours, other in ((large, small), (small, large)):
        if known & (set(ours) - set(other)):
            return ours
    return large if _has_memory(device) else small


def gpu_probes(batch: int = 256, side: int = 4096) -> tuple[Operation, ...]:
    """At least one for each kind of kernel that train steps on GPUs spend their time in.

    Args:
        batch: of images and sequences. By default tensors have 200 MB: more than any cache.
        side: of the square matrices.
    """
    return (*_everywhere(batch, side), *_on_gpus(batch))


def _has_memory(device: str) -> bool:
    with suppress(tf.errors.ResourceExhaustedError), tf.device(device):
        tf.raw_ops.Empty(shape=[_MEMORY >> 20, 1 << 20], dtype=tf.uint8)
        return True
    return False


def _floats(*shape: int) -> TensorSize:
    return TensorSize("float32", shape)


def _everywhere(batch: int, side: int) -> tuple[Operation, ...]:
    """For dispatch and launches, for memory traffic, for products, and what takes longer."""
    images, smaller = _floats(batch, 56, 56, 64), _floats(batch, 28, 28, 64)
    matrix, attention = _floats(side, side), _floats(batch, 4, 256, 256)
    return (
        Operation("AssignVariableOp", (TensorSize("resource"), _FEW), (), (("dtype", "float32"),)),
        Operation("Relu", (_FEW,), (_FEW,), (_TYPE,)),
        Operation("Mul", (_FEW, _FEW), (_FEW,), (_TYPE,)),
        Operation("AddV2", (_FEW, _FEW), (_FEW,), (_TYPE,)),
        Operation("Relu", (images,), (images,), (_TYPE,)),
        Operation("Mul", (images, images), (images,), (_TYPE,)),
        Operation(
            "MatMul",
            (matrix, matrix),
            (matrix,),
            (_TYPE, ("transpose_a", False), ("transpose_b", False)),
        ),
        *_convolution(images, _floats(3, 3, 64, 64), images),
        Operation(
            "DepthwiseConv2dNative", (images, _floats(3, 3, 64, 1)), (images,), _DEPTHWISE_WINDOW
        ),
        Operation("Sigmoid", (images,), (images,), (_TYPE,)),
        Operation("SquaredDifference", (images, _CHANNELS), (images,), (_TYPE,)),
        _sum("Sum", images, (0, 1, 2), _CHANNELS),
        Operation(
            "Tile",
            (_CHANNELS, _SHAPE),
            (images,),
            (_TYPE, ("Tmultiples", "int32")),
            ((1, (batch, *_TILED)),),
        ),
        Operation("MaxPoolGrad", (images, smaller, smaller), (images,), _POOLING),
        Operation("Softmax", (attention,), (attention,), (_TYPE,)),
        Operation(
            "SelectV2",
            (TensorSize("bool", attention.shape), attention, TensorSize("float32", ())),
            (attention,),
            (_TYPE,),
        ),
        Operation(
            "StatelessRandomUniformV2",
            (
                TensorSize("int32", (4,)),
                TensorSize("uint64", (1,)),
                TensorSize("uint64", (2,)),
                TensorSize("int32", ()),
            ),
            (attention,),
            (("Tshape", "int32"), ("dtype", "float32")),
            ((0, attention.shape), (3, 3)),
        ),
    )


def _on_gpus(batch: int) -> tuple[Operation, ...]:
    """Further kinds of kernels that train steps on GPUs spend their time in."""
    images, smaller = _floats(batch, 56, 56, 64), _floats(batch, 28, 28, 64)
    deep, narrow = _floats(batch, 14, 14, 1024), _floats(batch, 14, 14, 256)
    by_channel, channels = _floats(3, 3, 64, 1), _floats(64)
    tokens, heads = _floats(batch, 256, 784), _floats(batch, 196, 16, 64)
    queries, keys = _floats(4 * batch, 196, 64), _floats(4 * batch, 64, 196)
    return (
        *_convolution(deep, _floats(1, 1, 1024, 256), narrow),
        *_gradients("DepthwiseConv2dNative", images, by_channel, images, _DEPTHWISE_WINDOW),
        Operation("MaxPool", (images,), (smaller,), _POOLING),
        Operation("BiasAddGrad", (images,), (channels,), (_TYPE, ("data_format", "NHWC"))),
        Operation(
            "FusedBatchNormV3",
            (images, channels, channels, _floats(0), _floats(0)),
            (images, channels, channels, channels, channels, _floats(0)),
            (
                _TYPE,
                ("U", "float32"),
                ("data_format", "NHWC"),
                ("epsilon", 0.001),
                ("exponential_avg_factor", 1.0),
                ("is_training", True),
            ),
        ),
        Operation(
            "FusedBatchNormGradV3",
            (images, images, channels, channels, channels, _floats(0)),
            (images, channels, channels, _floats(0), _floats(0)),
            (
                _TYPE,
                ("U", "float32"),
                ("data_format", "NHWC"),
                ("epsilon", 0.001),
                ("is_training", True),
            ),
        ),
        _sum("Mean", tokens, (2,), _floats(batch, 256, 1)),
        Operation(
            "Transpose",
            (heads, _SHAPE),
            (_floats(batch, 16, 196, 64),),
            (_TYPE, ("Tperm", "int32")),
            ((1, (0, 2, 1, 3)),),
        ),
        Operation(
            "BatchMatMulV2",
            (queries, keys),
            (_floats(4 * batch, 196, 196),),
            (_TYPE, ("adj_x", False), ("adj_y", False)),
        ),
        Operation(
            "Einsum",
            (_floats(batch, 196, 4, 64), _floats(batch, 196, 4, 64)),
            (_floats(batch, 4, 196, 196),),
            (("N", 2), _TYPE, ("equation", "aecd,abcd->acbe")),
        ),
    )


def _convolution(
    images: TensorSize, window: TensorSize, features: TensorSize
) -> tuple[Operation, ...]:
    return (
        Operation("Conv2D", (images, window), (features,), _WINDOW),
        *_gradients("Conv2D", images, window, features, _WINDOW),
    )


def _gradients(
    kind: str,
    images: TensorSize,
    window: TensorSize,
    features: TensorSize,
    attributes: tuple[tuple[str, Any], ...],
) -> tuple[Operation, ...]:
    return (
        Operation(
            f"{kind}BackpropInput",
            (_SHAPE, window, features),
            (images,),
            attributes,
            ((0, images.shape),),
        ),
        Operation(
            f"{kind}BackpropFilter",
            (images, _SHAPE, features),
            (window,),
            attributes,
            ((1, window.shape),),
        ),
    )


def _sum(kind: str, values: TensorSize, axes: tuple[int, ...], sums: TensorSize) -> Operation:
    return Operation(
        kind,
        (values, TensorSize("int32", (len(axes),))),
        (sums,),
        (_TYPE, ("Tidx", "int32"), ("keep_dims", True)),
        ((1, axes),),
    )


def costs_of_device(
    device: str = "CPU:0",
    progress: Callable[[Iterable[Operation]], Iterable[Operation]] = iter,
) -> ProfiledCosts:
    """What stored profiles know of a device; all else by a roofline with its measured ceilings.

    `probes` are measured where they are not known yet, which takes seconds, and kept in the user's
    cache.

    Args:
        device: "CPU:0", "GPU:0" or "TPU:0".
        progress: sees the operations that are measured pass by.

    Raises:
        CheckmateError: TensorFlow does not see such a device, or the cache can't be used.

    Example:
        >>> costs_of_device().missing(probes("CPU:0"))
        0
    """
    profile = survey(probes(device), device, progress)
    return ProfiledCosts(profile, device_ceilings(device.split(":")[0]))
