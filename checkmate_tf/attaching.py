"""Put a budget on a Keras model, take it off, and keep it with copies of the model.

A budget on a model is a `train_step` of its own, in the model's dictionary. Keras copies a model
through its configuration, which knows nothing of that dictionary; so what copies a model is told
here to put the budget on the copy.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from checkmate_tf.planning.request import Request
from checkmate_tf.step import RematerializedStep
from checkmate_tf.trace.keras_models import forget_functions, is_model, switch_on_xla
from solvers import CheckmateError

Model = TypeVar("Model")


def attach(model: Model, request: Request) -> Model:
    """`model`, whose `train_step` keeps a budget from now on; a budget that it had is replaced.

    Raises:
        CheckmateError: Keras runs on another backend than TensorFlow.
    """
    _refuse_other_backends()
    owner: Any = model
    step = owner.train_step
    owner.train_step = RematerializedStep(
        step.function if isinstance(step, RematerializedStep) else step, request
    )
    keep_with_copies(model)
    forget_functions(model)
    return model


def restore(model: Model) -> Model:
    """Take the budget off a Keras model: it trains as it did before.

    It does not matter how the budget came there: by `rematerialize(model, …)`, by a step that was
    assigned to `model.train_step`, or by the decorator in the model's class. Of a model without a
    budget nothing changes.

    Args:
        model: a Keras model.

    Returns:
        The model.

    Raises:
        CheckmateError: it is no Keras model.

    Example:
        >>> import keras, checkmate_tf
        >>> model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
        >>> step = model.train_step
        >>> model = checkmate_tf.rematerialize(model, budget="1GiB", batch_size=32)
        >>> model.train_step == step
        False
        >>> checkmate_tf.restore(model).train_step == step
        True
    """
    if not is_model(model):
        raise CheckmateError(
            "not-a-keras-model", f"{model!r} is no Keras model; the step of a function is .function"
        )
    owner: Any = model
    step = owner.train_step
    if not isinstance(step, RematerializedStep):
        return model
    vars(model).pop("train_step", None)
    if owner.train_step != step.function:  # another than that of its class
        owner.train_step = step.function
    for name in ("make_train_function", "__reduce_ex__"):
        vars(model).pop(name, None)
    switch_on_xla(model, step.xla_was_on)
    forget_functions(model)
    return model


def keep_with_copies(model: Any) -> None:
    """Let copies of `model`, deep copies and pickles keep its budget; saved files hold none.

    Whether it has one is looked at when it is copied.
    """
    # In its dictionary, where Keras does not look for layers and variables.
    vars(model)["__reduce_ex__"] = functools.partial(_reduced, weakref.ref(model))


def _reduced(known: Any, protocol: Any) -> tuple[Any, ...]:
    """What makes a copy of the model, for `copy` and `pickle`."""
    model = known()
    kind: Any = type(model)
    reduced = kind.__reduce_ex__(model, protocol)
    step = vars(model).get("train_step")
    if not isinstance(step, RematerializedStep):
        return tuple(reduced)
    return _copied, (*reduced[:2], step.request)


def _copied(make: Callable[..., Any], arguments: tuple[Any, ...], request: Request) -> Any:
    return attach(make(*arguments), request)


def _refuse_other_backends() -> None:
    keras = sys.modules.get("keras")
    backend = keras.config.backend() if keras is not None else "tensorflow"
    if backend != "tensorflow":
        raise CheckmateError(
            "keras-backend-unsupported",
            f"Keras runs on {backend!r} here, but only TensorFlow's functions can be rewritten: "
            "set KERAS_BACKEND=tensorflow before Keras is imported",
        )
