"""What a step is called with at any batch size, told by one example.

Some arguments carry the batch in their first dimension and grow with it; the others stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from solvers import CheckmateError

_HOW = (
    "give arrays whose first dimension is the batch, or tf.TensorSpec((None, …)) for each argument "
    "that grows with it"
)


@dataclass(frozen=True)
class ExampleBatch:
    """The arguments of a step, of which some grow with the batch.

    Attributes:
        arguments: one `tf.TensorSpec` for each array, all other values as they are.
        grows: for each leaf of `arguments`, whether its first dimension is the batch.
        names: of the leaves, as a user would write them: "data[0]", "x['image']".
        size: the first dimension in the example; None where that was left open.
    """

    arguments: tuple[Any, ...]
    grows: tuple[bool, ...]
    names: tuple[str, ...]
    size: int | None

    def at(self, size: int | None) -> tuple[Any, ...]:
        """The arguments with a batch of `size`; None for batches of any size."""
        leaves = [
            tf.TensorSpec([size, *leaf.shape[1:]], leaf.dtype) if grows else leaf
            for leaf, grows in zip(tf.nest.flatten(self.arguments), self.grows, strict=True)
        ]
        arguments: tuple[Any, ...] = tf.nest.pack_sequence_as(self.arguments, leaves)
        return arguments

    @property
    def growing(self) -> tuple[str, ...]:
        """Names of what grows with the batch."""
        return tuple(name for name, grows in zip(self.names, self.grows, strict=True) if grows)

    @property
    def staying(self) -> tuple[str, ...]:
        """Names of the arrays that do not."""
        leaves = zip(tf.nest.flatten(self.arguments), self.names, self.grows, strict=True)
        return tuple(
            name for leaf, name, grows in leaves if isinstance(leaf, tf.TensorSpec) and not grows
        )


def example_batch(
    arguments: tuple[Any, ...], names: tuple[str, ...], floats: str | None = None
) -> ExampleBatch:
    """Understand an example batch.

    Where first dimensions are left open (None), what has one grows with the batch. Else the first
    array says how large the batch is, and every array that is as long grows with it.

    Args:
        arguments: arrays, tensors, `tf.TensorSpec`s, and structures of these.
        names: of the arguments.
        floats: the type that arrays of floating-point numbers are turned into, as `fit` does.

    Raises:
        CheckmateError: nothing has a batch dimension.

    Example:
        >>> example = example_batch((np.zeros((8, 3)), np.zeros(8), np.zeros(5)), ("x", "y", "w"))
        >>> example.growing, example.staying, example.size
        (('x', 'y'), ('w',), 8)
    """
    specs = specs_of(arguments, floats)
    leaves = tf.nest.flatten(specs)
    named = [
        each
        for argument, name in zip(arguments, names, strict=True)
        for each in _names(argument, name)
    ]
    shapes = [each.shape if isinstance(each, tf.TensorSpec) else None for each in leaves]
    for name, shape in zip(named, shapes, strict=True):
        if shape is not None and (shape.rank is None or None in shape[1:]):
            raise CheckmateError(
                "shape-unknown",
                f"{name} has the shape {shape}: every dimension but the first must be known",
            )
    firsts = [shape[0] if shape is not None and shape.rank else 0 for shape in shapes]
    size = None if None in firsts else next(filter(None, firsts), 0)
    if size == 0:
        found = ", ".join(named) or "nothing"
        raise CheckmateError(
            "example-without-batch", f"batch={found}: nothing in it has a batch dimension; {_HOW}"
        )
    return ExampleBatch(specs, tuple(each == size for each in firsts), tuple(named), size)


def specs_of(arguments: tuple[Any, ...], floats: str | None = None) -> tuple[Any, ...]:
    """The arguments with a `tf.TensorSpec` for each array; see `example_batch`."""
    specs: tuple[Any, ...] = tf.nest.map_structure(lambda each: _spec(each, floats), arguments)
    return specs


def _spec(value: Any, floats: str | None) -> Any:
    if isinstance(value, tf.TensorSpec):
        return value
    if isinstance(value, np.ndarray):
        is_floating = np.issubdtype(value.dtype, np.floating)
        return tf.TensorSpec(value.shape, floats if floats and is_floating else value.dtype)
    if isinstance(value, tf.Tensor):
        return tf.TensorSpec(value.shape, value.dtype)
    return value


def _names(value: Any, name: str) -> Iterator[str]:
    """The leaves' names, in the order of `tf.nest.flatten`."""
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _names(value[key], f"{name}[{key!r}]")
    elif isinstance(value, tuple | list):
        for number, each in enumerate(value):
            yield from _names(each, f"{name}[{number}]")
    else:
        yield name
