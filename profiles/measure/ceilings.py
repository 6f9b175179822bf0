"""A handful of operations whose times tell a device's ceilings, measured once."""

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
)
"""One for a launch, two for memory traffic, four for products, one for depthwise products."""


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
