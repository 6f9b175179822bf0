"""Keras models: which ones a step refers to, and the functions that they keep of their steps.

`fit` keeps the function that it made of `train_step` until the model is compiled anew. A step
that is exchanged in between would never run.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from profiles.tensorflow_internals import build_state, compile_mark, metrics_are_built

_KINDS = ("train", "test", "predict")


def is_model(value: Any) -> bool:
    """Whether `value` is a Keras model, of Keras 3 or another."""
    return hasattr(type(value), "make_train_function")


def is_model_class(value: Any) -> bool:
    """Whether `value` is a class of such models."""
    return isinstance(value, type) and hasattr(value, "make_train_function")


def models_of(function: Any) -> list[Any]:
    """The models that `function` is a method of, or that its own code refers to by name."""
    found = {id(each): each for each in _referred_to(function)}
    return list(found.values())


def _referred_to(function: Any) -> list[Any]:
    if isinstance(function, functools.partial):
        named = [*function.args, *function.keywords.values()]
        return [*filter(is_model, named), *_referred_to(function.func)]
    function = getattr(function, "python_function", function)  # of a tf.function
    found = [getattr(function, "__self__", None)]
    for each in _named_values(function):
        found += [each, getattr(each, "__self__", None)]
    return [each for each in found if is_model(each)]


def _named_values(function: Any) -> list[Any]:
    """What the names in the code of `function` stand for now, its own variables left out."""
    if not hasattr(function, "__code__"):  # not written in Python
        return []
    module = function.__globals__
    values = [module[name] for name in function.__code__.co_names if name in module]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # nothing has been put into it yet
            values.append(cell.cell_contents)
    return values


def forget_functions(model: Any) -> None:
    """Let Keras make its functions anew, of the steps that the model has when they next run.

    This may happen in the middle of `fit`.
    """
    for kind in _KINDS:
        if getattr(model, f"{kind}_function", None) is not None:
            setattr(model, f"{kind}_function", _made_when_called(model, kind))


def _made_when_called(model: Any, kind: str) -> Callable[[Any], Any]:
    def function(iterator: Any) -> Any:
        getattr(model, f"make_{kind}_function")(force=True)
        return getattr(model, f"{kind}_function")(iterator)

    return function


def run_training_by(model: Any, around: Callable[..., Any]) -> None:
    """Let `around(function, iterator)` call the train function that Keras has made of the model.

    It begins with the next batch, for Keras looks the function up at every one; a function that is
    made later is called as it is.
    """
    function = getattr(model, "train_function", None)
    if function is not None and around not in _around(function):
        model.train_function = _Around(around, function)


class _Around(functools.partial[Any]):
    """A train function that something else calls."""


def _around(function: Any) -> list[Any]:
    return [function.func, *_around(function.args[0])] if isinstance(function, _Around) else []


def as_keras_made_it(function: Any) -> Any:
    """The train function itself, that `run_training_by` may have let something else call."""
    return as_keras_made_it(function.args[0]) if isinstance(function, _Around) else function


def new_train_function(model: Any, around: Callable[..., Any]) -> Any:
    """Another train function, beside the one that Keras has made; `around` will call it."""
    model.make_train_function(force=True)
    made = as_keras_made_it(model.train_function)
    run_training_by(model, around)
    return made


def build_optimizer(model: Any, step: Any) -> None:
    """Make the optimizer's variables, as Keras' own `train_step` does when it is first traced.

    TensorFlow traces a function twice in which variables are made. A step of the user's own may
    train others than all of the model's, and is left alone.
    """
    if not _is_train_step_of_keras(step):
        return
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and not optimizer.built and model.trainable_variables:
        keras = sys.modules["keras"]
        with keras.name_scope(optimizer.name, caller=optimizer):
            optimizer.build(model.trainable_variables)


def build_metrics(model: Any, step: Any, *arguments: Any) -> None:
    """As `build_optimizer`, for the metrics; `fit` makes them before it traces the step.

    `arguments` are those of the step: one batch.
    """
    if _is_train_step_of_keras(step) and not metrics_are_built(model):
        with suppress(Exception):  # of the model's own code, which its step will raise as well
            build_state(model, *arguments)


def _is_train_step_of_keras(step: Any) -> bool:
    keras = sys.modules.get("keras")
    return keras is not None and getattr(step, "__func__", None) is keras.Model.train_step


def switch_off_xla(model: Any) -> bool:
    """Let Keras make functions of the model's steps without XLA; whether it was on."""
    if not getattr(model, "compiled", False) or not getattr(model, "jit_compile", False):
        return False
    model.jit_compile = False
    return True


def switch_on_xla(model: Any, mark: Any) -> None:
    """Undo `switch_off_xla`, unless the model has been compiled since `compile_mark` was `mark`."""
    if mark is not None and mark is compile_mark(model):
        model.jit_compile = True


def attend_training(model: Any, kind: type[Any]) -> None:
    """Tell `model.train_step`, if that is a `kind`, when Keras makes a function of it.

    Its `prepare(model)` is called before, and `attend()` when the function is there.

    Args:
        model: a model, or a class of models: then it is so for each of them.
        kind: of step.
    """
    if is_model_class(model):
        model.make_train_function = _telling(model.make_train_function, kind)
    elif "make_train_function" not in vars(model):
        make, known = _telling(type(model).make_train_function, kind), weakref.ref(model)
        model.make_train_function = lambda force=False: make(known(), force)


def _telling(make: Callable[..., Any], kind: type[Any]) -> Callable[..., Any]:
    @functools.wraps(make)
    def make_train_function(model: Any, force: bool = False) -> None:
        step: Any = model.train_step
        if not isinstance(step, kind):
            make(model, force)
            return
        step.prepare(model)
        make(model, force)
        step.attend()

    return make_train_function


def training_state(model: Any) -> tuple[Any, tuple[int, ...]]:
    """What a trace of the model's step depends on beside its inputs, to compare with a later one.

    The first part is made anew by every `compile`; the second tells what is trainable.
    """
    return compile_mark(model), tuple(map(id, model.trainable_variables))


def same_state(one: tuple[Any, Any] | None, other: tuple[Any, Any] | None) -> bool:
    """Whether a trace that was made in one state is good in the other."""
    if one is None or other is None:
        return one is other
    return one[0] is other[0] and one[1] == other[1]
