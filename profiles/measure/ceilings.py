"""A handful of operations whose times tell a device's ceilings and slow kinds, measured once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from profiles.measure.surveys import survey
from profiles.operation import Operation, TensorSize
from profiles.profiled import ProfiledCosts
from profiles.roofline import device_ceilings

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
_FEW = TensorSize("float32", (256,))
_IMAGES = TensorSize("float32", (8, 56, 56, 64))
_FILTER = TensorSize("float32", (3, 3, 64, 64))
_FILTER_BY_CHANNEL = TensorSize("float32", (3, 3, 64, 1))
_MATRIX = TensorSize("float32", (1024, 1024))
_SHAPE = TensorSize("int32", (4,))
_CHANNELS = TensorSize("float32", (1, 1, 1, 64))
_SMALLER = TensorSize("float32", (8, 28, 28, 64))
_ATTENTION = TensorSize("float32", (8, 4, 256, 256))

PROBES = (
    Operation("Relu", (_FEW,), (_FEW,), (_TYPE,)),
    Operation("Relu", (_IMAGES,), (_IMAGES,), (_TYPE,)),
    Operation("Mul", (_IMAGES, _IMAGES), (_IMAGES,), (_TYPE,)),
    Operation(
        "MatMul",
        (_MATRIX, _MATRIX),
        (_MATRIX,),
        (_TYPE, ("transpose_a", False), ("transpose_b", False)),
    ),
    Operation("Conv2D", (_IMAGES, _FILTER), (_IMAGES,), _WINDOW),
    Operation(
        "Conv2DBackpropInput",
        (_SHAPE, _FILTER, _IMAGES),
        (_IMAGES,),
        _WINDOW,
        ((0, _IMAGES.shape),),
    ),
    Operation(
        "Conv2DBackpropFilter",
        (_IMAGES, _SHAPE, _IMAGES),
        (_FILTER,),
        _WINDOW,
        ((1, _FILTER.shape),),
    ),
    Operation(
        "DepthwiseConv2dNative",
        (_IMAGES, _FILTER_BY_CHANNEL),
        (_IMAGES,),
        tuple(each for each in _WINDOW if each[0] != "use_cudnn_on_gpu"),
    ),
    Operation("Sigmoid", (_IMAGES,), (_IMAGES,), (_TYPE,)),
    Operation("SquaredDifference", (_IMAGES, _CHANNELS), (_IMAGES,), (_TYPE,)),
    Operation(
        "Sum",
        (_IMAGES, TensorSize("int32", (3,))),
        (_CHANNELS,),
        (_TYPE, ("Tidx", "int32"), ("keep_dims", True)),
        ((1, (0, 1, 2)),),
    ),
    Operation(
        "Tile",
        (_CHANNELS, _SHAPE),
        (_IMAGES,),
        (_TYPE, ("Tmultiples", "int32")),
        ((1, (8, 56, 56, 1)),),
    ),
    Operation(
        "MaxPoolGrad",
        (_IMAGES, _SMALLER, _SMALLER),
        (_IMAGES,),
        (
            _TYPE,
            ("data_format", "NHWC"),
            ("explicit_paddings", ()),
            ("ksize", (1, 2, 2, 1)),
            ("padding", "VALID"),
            ("strides", (1, 2, 2, 1)),
        ),
    ),
    Operation("Softmax", (_ATTENTION,), (_ATTENTION,), (_TYPE,)),
    Operation(
        "SelectV2",
        (TensorSize("bool", _ATTENTION.shape), _ATTENTION, TensorSize("float32", ())),
        (_ATTENTION,),
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
        (_ATTENTION,),
        (("Tshape", "int32"), ("dtype", "float32")),
        ((0, _ATTENTION.shape), (3, 3)),
    ),
)
"""One for a launch, two for memory traffic, four for products, one for depthwise products; the
others are of kinds that take longer than their bytes tell."""


def costs_of_device(
    device: str = "CPU:0",
    progress: Callable[[Iterable[Operation]], Iterable[Operation]] = iter,
) -> ProfiledCosts:
    """What stored profiles know of a device; all else by a roofline with its measured ceilings.

    `PROBES` are measured where they are not known yet, which takes a second or two, and kept in
    the user's cache.

    Args:
        device: "CPU:0", "GPU:0" or "TPU:0".
        progress: sees the operations that are measured pass by.

    Raises:
        CheckmateError: TensorFlow does not see such a device, or the cache can't be used.

    Example:
        >>> costs_of_device().missing(PROBES)
        0
    """
    return ProfiledCosts(survey(PROBES, device, progress), device_ceilings(device.split(":")[0]))
