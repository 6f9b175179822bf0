"""The batch that a compiled Keras model is trained with, as its inputs and losses tell it."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from solvers import CheckmateError

_LABELS = "int64"
"""The type of classes by their numbers, as NumPy makes them."""


def batch_of_model(model: Any) -> tuple[Any, ...]:
    """(x, y) as types, for batches of any size; (x,) where the model has no loss.

    Raises:
        CheckmateError: the model does not tell its inputs, as one that was written as a class.

    Example:
        >>> model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(3)])
        >>> model.compile(loss="sparse_categorical_crossentropy")
        >>> [each.shape.as_list() for each in batch_of_model(model)]
        [[None, 8], [None]]
    """
    inputs = getattr(model, "inputs", None)
    if not inputs or not getattr(model, "outputs", None):
        raise CheckmateError(
            "argument-missing",
            f"batch= is missing: the model {model.name!r} does not tell what it is called with; "
            "give the data as `fit` takes them, (x, y), arrays or tf.TensorSpec((None, …))",
        )
    given = [tf.TensorSpec(each.shape, each.dtype) for each in inputs]
    shapes = model.input_shape
    keys = sorted(shapes) if isinstance(shapes, dict) else [each.name for each in inputs]
    x = given[0] if len(given) == 1 else dict(zip(keys, given, strict=True))
    if model.loss is None:
        return (x,)
    named = dict(zip(_names_of_outputs(model), model.outputs, strict=True))
    targets = {
        name: _target(output, loss)
        for (name, output), loss in zip(named.items(), _losses(model.loss, named), strict=True)
        if loss is not None
    }
    if isinstance(model.loss, dict) or isinstance(model.output_shape, dict):
        return x, targets
    return x, next(iter(targets.values())) if len(targets) == 1 else list(targets.values())


def _names_of_outputs(model: Any) -> list[str]:
    shapes = model.output_shape
    if isinstance(shapes, dict):
        return sorted(shapes)
    # A Sequential has one output, and no name for it.
    return list(getattr(model, "output_names", [each.name for each in model.outputs]))


def _losses(loss: Any, outputs: dict[str, Any]) -> list[Any]:
    """The loss of every output, in their order."""
    if isinstance(loss, dict):
        return [loss.get(name) for name in outputs]
    return list(loss) if isinstance(loss, list | tuple) else [loss] * len(outputs)


def _target(output: Any, loss: Any) -> tf.TensorSpec:
    """The type of what is compared with an output: classes for sparse losses, else its like."""
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)
    if "sparse" in name.lower():
        return tf.TensorSpec(output.shape[:-1], _LABELS)
    return tf.TensorSpec(output.shape, keras.backend.floatx())
