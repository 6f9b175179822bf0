"""A convolution with its bias, and their gradients, as operations and as fused pairs."""

from profiles.fusion import fuse
from profiles.operation import Operation, TensorSize

IMAGE, FILTER = TensorSize("float32", (2, 8, 8, 4)), TensorSize("float32", (3, 3, 4, 6))
BIAS, FEATURES = TensorSize("float32", (6,)), TensorSize("float32", (2, 8, 8, 6))
CONVOLUTION = Operation(
    "Conv2D", (IMAGE, FILTER), (FEATURES,), (("padding", "SAME"), ("strides", (1, 1, 1, 1)))
)
ADDITION = Operation("BiasAdd", (FEATURES, BIAS), (FEATURES,))
SHAPE = TensorSize("int32", (4,))
FILTER_GRADIENT = Operation(
    "Conv2DBackpropFilter",
    (IMAGE, SHAPE, FEATURES),
    (FILTER,),
    (("padding", "SAME"), ("strides", (1, 1, 1, 1))),
    ((1, FILTER.shape),),
)
BIAS_GRADIENT = Operation("BiasAddGrad", (FEATURES,), (BIAS,))
FUSED = fuse([CONVOLUTION, ADDITION], [[0, 1], [3, 2]], [IMAGE, FILTER, BIAS], [4])
GRADIENTS = fuse(
    [BIAS_GRADIENT, FILTER_GRADIENT], [[0], [1, 2, 0]], [FEATURES, IMAGE, SHAPE], [3, 4]
)
FILTER_FIRST = fuse(
    [FILTER_GRADIENT, BIAS_GRADIENT], [[1, 2, 0], [0]], [FEATURES, IMAGE, SHAPE], [3, 4]
)
