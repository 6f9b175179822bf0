"""The gradient of max pooling, written for XLA so that it needs no memory of its own.

XLA:CPU makes four arrays of integers for it, each as large as the pooling's input: the place of
every number in each dimension. They depend on nothing, so that its scheduler makes them at the
start of a step, where they stay until the gradient reads them. What is written here is one loop
over the input instead, with the same results to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import tensorflow as tf

from checkmate_tf.trace.emission import Emitter
from checkmate_tf.trace.signatures import signature
from profiles.operation import Operation

_SUMMED_EXACTLY = ("float32", "float64")
"""Types in which XLA adds up overlapping windows as they are: it rounds others less often."""

_MOST_PLACES = 16
"""Places of a window: for each number of the input the loop looks at all of them, twice."""


@dataclass(frozen=True)
class Windows:
    """Windows of a pooling over rows and columns that lie inside its input.

    Attributes:
        size: rows and columns of a window.
        strides: rows and columns from a window to the next.
        count: windows along rows and along columns.
    """

    size: tuple[int, int]
    strides: tuple[int, int]
    count: tuple[int, int]

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """The places of a window, row by row."""
        return list(product(range(self.size[0]), range(self.size[1])))

    @property
    def ends(self) -> list[int]:
        """Rows and columns up to the last window's end."""
        sizes = zip(self.size, self.strides, self.count, strict=True)
        return [stride * (count - 1) + size for size, stride, count in sizes]

    def part(self, offset: tuple[int, int]) -> dict[str, Any]:
        """Arguments of StridedSlice for the numbers at one place of each window."""
        ends = [
            end - size + first + 1
            for end, size, first in zip(self.ends, self.size, offset, strict=True)
        ]
        return {
            "begin": [0, *offset, 0],
            "end": [0, *ends, 0],
            "strides": [1, *self.strides, 1],
            "begin_mask": 0b1001,  # all examples and all channels
            "end_mask": 0b1001,
        }


def windows_of(operation: Operation) -> Windows | None:
    """The windows of a MaxPoolGrad that is written as a loop; None for all else.

    Example:
        >>> from profiles.operation import TensorSize
        >>> read, made = (TensorSize("float32", (-1, *size, 3)) for size in ((8, 6), (4, 3)))
        >>> attributes = {"ksize": (1, 2, 2, 1), "strides": (1, 2, 2, 1), "padding": "VALID",
        ...               "data_format": "NHWC"}
        >>> inputs = read, made, made
        >>> windows_of(Operation("MaxPoolGrad", inputs, (read,), tuple(attributes.items())))
        Windows(size=(2, 2), strides=(2, 2), count=(4, 3))
    """
    if operation.type != "MaxPoolGrad" or operation.attribute("data_format") != "NHWC":
        return None
    read, made = (each.shape[1:3] for each in operation.inputs[:2])
    known = len(read) == len(made) == 2 and -1 not in (*read, *made)
    if not known or operation.attribute("padding") == "EXPLICIT":
        return None
    examples, rows, columns, channels = operation.attribute("ksize")
    _, down, right, _ = operation.attribute("strides")
    if (examples, channels) != (1, 1) or rows * columns > _MOST_PLACES:
        return None
    windows = Windows((rows, columns), (down, right), (made[0], made[1]))
    if any(end > extent for end, extent in zip(windows.ends, read, strict=True)):
        return None  # padded
    overlap = rows > down or columns > right
    return None if overlap and operation.inputs[0].dtype not in _SUMMED_EXACTLY else windows


def gradient(x: Any, dy: Any, windows: Windows) -> Any:
    """What the numbers of `x` get of `dy`, the gradient of the maxima of their windows.

    The first of equal numbers is the greatest, and windows are added up row by row, as in XLA's
    own. A number that is not greater or equal gives way, so that NaN wins where it wins there.

    Args:
        x: shape (examples, rows, columns, channels).
        dy: one number for each window.
        windows: of the pooling.

    Example:
        >>> x = tf.reshape(tf.constant([1.0, 4.0, 4.0, 2.0]), (1, 2, 2, 1))
        >>> dy = tf.fill((1, 1, 1, 1), 5.0)
        >>> gradient(x, dy, Windows((2, 2), (2, 2), (1, 1))).numpy().ravel().tolist()
        [0.0, 5.0, 0.0, 0.0]
    """
    offsets = windows.offsets
    greatest, *others = [tf.raw_ops.StridedSlice(input=x, **windows.part(each)) for each in offsets]
    winner = tf.zeros_like(greatest, tf.int32)
    for place, other in enumerate(others, 1):
        stays = greatest >= other
        winner = tf.where(stays, winner, place)
        greatest = tf.where(stays, greatest, other)
    shape, nothing = tf.shape(x), tf.zeros_like(dy)
    # Of two windows that a number lies in, it has the later place in the earlier one.
    return sum(
        (
            tf.raw_ops.StridedSliceGrad(
                shape=shape, dy=tf.where(winner == place, dy, nothing), **windows.part(offset)
            )
            for place, offset in reversed(list(enumerate(offsets)))
        ),
        start=tf.zeros_like(x),
    )


class EmitterForXLA(Emitter):
    """Copies operations, but writes the gradients of max poolings anew."""

    def create(self, operation: Any, inputs: list[Any], *args: Any, **options: Any) -> Any:
        """See `Emitter`; what a loop waits for is what it reads, for XLA ignores all else."""
        windows = windows_of(signature(operation)) if operation.type == "MaxPoolGrad" else None
        if windows is None:
            return super().create(operation, inputs, *args, **options)
        x, _, dy = inputs
        with self.target.name_scope(operation.name.rsplit("/", 1)[-1]):
            return gradient(x, dy, windows).op
