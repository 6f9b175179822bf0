"""What is given for a train step and is none: a loop of steps, or a part of one, of Keras' own."""

from __future__ import annotations

from typing import Any

from checkmate_tf.trace.keras_models import as_keras_made_it, is_model

_STEPS = frozenset({"train_step", "test_step", "predict_step"})

_LOOPS = frozenset({"fit", "evaluate", "predict"}) | {
    f"{kind}_on_batch" for kind in ("train", "test", "predict")
}

_INSTEAD = (
    "give the compiled model itself, rematerialize(model, budget=…), or a function of your own "
    "that computes a loss and its gradients"
)


def why_no_step(function: Any) -> str:
    """Why `function` is no train step, and what to give instead; "" where it may be one.

    Example:
        >>> import keras
        >>> why_no_step(keras.losses.MeanSquaredError()).partition(";")[0]
        'a MeanSquaredError is a part of a step'
        >>> why_no_step(keras.Model.train_step)
        ''
    """
    function = as_keras_made_it(function)
    name = getattr(function, "__name__", "")
    owner = getattr(function, "__self__", None)
    if is_model(owner) and name in _LOOPS:
        return (
            f"model.{name} runs the model's step: give the model itself, "
            f"rematerialize(model, budget=…), and call model.{name} as before"
        )
    part = function if owner is None else owner
    if _is_kerass(type(part)) and not is_model(part):
        return f"a {type(part).__name__} is a part of a step; {_INSTEAD}"
    function = getattr(function, "python_function", function)  # of a tf.function
    if not is_model(owner) and name not in _STEPS and _is_kerass(function):
        return f"{name!r} is a function of Keras' own, and no step; {_INSTEAD}"
    return ""


def _is_kerass(value: Any) -> bool:
    """Whether a function is of Keras, or a class is of Keras or made from one."""
    kinds = value.__mro__ if isinstance(value, type) else (value,)
    modules = [str(getattr(each, "__module__", "")).partition(".")[0] for each in kinds]
    return not {"keras", "tf_keras"}.isdisjoint(modules)
