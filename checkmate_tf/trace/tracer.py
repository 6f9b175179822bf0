"""One trace for all calls of a step that are the same call to TensorFlow.

Its function cache decides, as for any `tf.function`: by the types of tensors, by the
values of Python numbers, by the identity of objects, and by the replica that calls. A step that
is called while another function is traced is traced again each time, as Python code would be.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf

from checkmate_tf.trace.keras_models import same_state, training_state
from checkmate_tf.user_warnings import warn_user
from profiles.tensorflow_internals import tracing_options
from solvers import CheckmateError

_CHANGES = 3
"""Traces for new values of one argument until a warning names it."""

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Traced:
    """Traces of a step in one state of its model, and what runs for each of them.

    Attributes:
        function: a tf.function, which keeps the traces.
        runs: for a ConcreteFunction and a batch size, what runs.
    """

    function: Any
    runs: dict[tuple[Any, int | None], Callable[..., Any]] = field(default_factory=dict)


class Tracer:
    """Makes ConcreteFunctions of a step."""

    def __init__(self, function: Callable[..., Any], owner: Any) -> None:
        """`owner` is the Keras model that the step belongs to, or None."""
        self._function = function
        self._owner = owner
        self._keeps_types = hasattr(function, "python_function") or _is_concrete(function)
        self._signature = None if _is_concrete(function) else _signature(function)
        self._state: tuple[Any, Any] | None = None
        self._traced = Traced(self._tf_function())
        self._changing = _ChangingArguments(self._signature)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """The arguments as Python binds them, defaults filled in.

        Raises:
            TypeError: they don't fit the step.
        """
        if self._signature is None:
            return args, kwargs
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if self._keeps_types:
            return bound.args, bound.kwargs
        held: Arguments = tf.nest.map_structure(_held, (bound.args, bound.kwargs))
        return held

    def traced(self) -> Traced:
        """The traces that are good in the state in which the step's model is now."""
        if self._owner is not None:
            state = training_state(self._owner)
            if not same_state(state, self._state):
                self._state = state
                self.begin_anew()
        return self._traced

    def begin_anew(self) -> Traced:
        """Leave all traces behind, which might serve a call that should have one of its own."""
        self._traced = Traced(self._tf_function())
        return self._traced

    def trace(self, traced: Traced, arguments: Arguments) -> Any:
        """The ConcreteFunction for `arguments`."""
        return _concrete(traced.function, *arguments)

    def trace_anew(self, arguments: Arguments) -> Any:
        """A ConcreteFunction for `arguments`, of what the step's code does now."""
        return _concrete(self._tf_function(), *arguments)

    def note_new_trace(self, arguments: Arguments) -> None:
        """Warn, once, of an argument whose changes cost a new trace again and again."""
        self._changing.note(arguments)

    def _tf_function(self) -> Any:
        """A tf.function of the step that has not been traced; of a tf.function, its like."""
        function: Any = self._function
        if _is_concrete(function):
            return function
        if not hasattr(function, "python_function"):
            return tf.function(_with_variables(function))
        return tf.function(
            function.python_function,
            input_signature=function.input_signature,
            **tracing_options(function),
        )


def batch_of(arguments: Arguments) -> Any:
    """The first tensor that has dimensions, whose first one is the batch; None if there is none.

    Of values for several replicas, it is that of the first one.
    """
    return next(
        (each for each in map(_on_a_replica, tf.nest.flatten(arguments)) if _shape(each)), None
    )


def _on_a_replica(value: Any) -> Any:
    is_one_for_each = isinstance(value, tf.distribute.DistributedValues)
    return value.values[0] if is_one_for_each and not isinstance(value, tf.Variable) else value


def relaxed_batch(arguments: Arguments, batch_size: int) -> Arguments:
    """`arguments` as types for any batch up to `batch_size`, which share a trace.

    What is as long as the batch is taken to be one value for each of its examples.
    """
    batch = batch_of(arguments)
    length = None if batch is None else batch.shape[0]
    if length is None or length > batch_size:
        return arguments

    def relaxed(value: Any) -> Any:
        if _shape(value)[:1] != (length,):
            return value
        return tf.TensorSpec([None, *value.shape[1:]], value.dtype)

    types: Arguments = tf.nest.map_structure(relaxed, arguments)
    return types


def _shape(value: Any) -> tuple[int | None, ...]:
    """Of an array; () of what is none, or has no dimensions or an unknown number of them."""
    if not isinstance(value, tf.Tensor | np.ndarray) or value.shape == tf.TensorShape(None):
        return ()
    return tuple(value.shape)


class _OneObject(tf.types.experimental.TraceType):  # type: ignore[misc]
    """The type of one variable alone: a call with another one is another call.

    A tf.function takes other variables of the same shape into a trace that it has. A plan belongs
    to the variables that it was made with.
    """

    def __init__(self, value: Any) -> None:
        self._value = weakref.ref(value)
        self._number = id(value)

    def is_subtype_of(self, other: Any) -> bool:
        return self.__eq__(other)

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Any:
        return self if all(self == other for other in others) else None

    def placeholder_value(self, placeholder_context: Any) -> Any:
        return _Held(self._value())

    def cast(self, value: Any, cast_context: Any) -> Any:
        return value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _OneObject):
            return False
        value = self._value()
        return bool(value is not None and value is other._value())

    def __hash__(self) -> int:
        return self._number


class _Held:
    """A variable among the arguments."""

    def __init__(self, variable: Any) -> None:
        self.variable = variable

    def __tf_tracing_type__(self, context: Any) -> Any:
        return _OneObject(self.variable)


def _held(value: Any) -> Any:
    return _Held(value) if isinstance(value, tf.Variable) else value


def _with_variables(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is given `_Held` variables, and gives them to `function` as they are."""

    def release(value: Any) -> Any:
        return value.variable if isinstance(value, _Held) else value

    @functools.wraps(function, updated=())
    def with_variables(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tf.nest.map_structure(release, (args, kwargs))
        return function(*args, **kwargs)

    return with_variables


def _is_concrete(function: Any) -> bool:
    return isinstance(function, tf.types.experimental.ConcreteFunction)


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(getattr(function, "python_function", function))
    except (TypeError, ValueError):  # not written in Python
        return None


def _concrete(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if _is_concrete(function):
        return function
    for each in tf.nest.flatten((args, kwargs)):
        if isinstance(each, tf.RaggedTensor | tf.SparseTensor):
            raise CheckmateError(
                f"an argument of the step is a {type(each).__name__}, whose size depends on its "
                "values, so that memory can't be planned: make it dense before the step, "
                "with to_tensor(shape=…) or tf.sparse.to_dense"
            )
    return function.get_concrete_function(*args, **kwargs)


class _ChangingArguments:
    """Counts for which arguments a step was traced anew."""

    def __init__(self, signature: inspect.Signature | None) -> None:
        self._signature = signature
        self._before: dict[str, tuple[list[Any], list[Any]]] = {}
        self._changes: Counter[tuple[str, str]] = Counter()

    def note(self, arguments: Arguments) -> None:
        """Compare the arguments of a new trace with those of the one before."""
        now = {name: _plain_and_shapes(value) for name, value in self._named(arguments).items()}
        for name, (plain, shapes) in now.items():
            old_plain, old_shapes = self._before.get(name, (plain, shapes))
            if plain != old_plain:
                values = f"{old_plain[0]!r}, then {plain[0]!r}" if old_plain and plain else "others"
                how = "pass it as a tensor (tf.constant, or a tf.Variable that you assign to)"
                self._count(name, f"{name!r} has changed again (it was {values})", how)
            elif shapes != old_shapes:
                how = "pad it, or pass batch_size=… where only the batch differs"
                self._count(name, f"the shape of {name!r} has changed again", how)
        self._before = now

    def _count(self, name: str, what: str, how: str) -> None:
        self._changes[name, how] += 1
        if self._changes[name, how] == _CHANGES:
            warn_user(f"{what}: each new one is traced again, which takes time; {how}")

    def _named(self, arguments: Arguments) -> dict[str, Any]:
        args, kwargs = arguments
        if self._signature is None:
            return {**{f"argument {number}": each for number, each in enumerate(args)}, **kwargs}
        return dict(self._signature.bind(*args, **kwargs).arguments)


def _plain_and_shapes(value: Any) -> tuple[list[Any], list[Any]]:
    leaves = tf.nest.flatten(value)
    plain = [each for each in leaves if isinstance(each, bool | int | float | complex | str)]
    return plain, [_shape(each) for each in leaves]
