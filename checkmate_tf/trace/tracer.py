"""One trace for all calls of a step that are the same call to TensorFlow.

Its function cache decides, as for any `tf.function`: by the types of tensors, by the
values of Python numbers, by the identity of objects, and by the replica that calls. A step that
is called while another function is traced is traced again each time, as Python code would be.
"""

from __future__ import annotations

import functools
import inspect
import operator
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf

from checkmate_tf.trace.batched_arguments import Arguments, narrowed, shape_of
from checkmate_tf.trace.keras_models import same_state, training_state
from checkmate_tf.user_warnings import warn_user
from profiles.tensorflow_internals import converted_by_autograph, tracing_options

_CHANGES = 3
"""Traces for new values of one argument until a warning names it."""


@dataclass(frozen=True)
class Traced:
    """Traces of a step in one state of its model, and what runs for each of them.

    Attributes:
        function: a tf.function, which keeps the traces.
        narrowed: for an input signature with sizes that the step's own one leaves open, its like.
        runs: for a ConcreteFunction and a batch size, what runs.
    """

    function: Any
    narrowed: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    runs: dict[tuple[Any, int | None], Callable[..., Any]] = field(default_factory=dict)


class Tracer:
    """Makes ConcreteFunctions of a step."""

    def __init__(self, function: Callable[..., Any], owner: Any, compiled: bool = False) -> None:
        """Nothing is traced yet.

        Args:
            function: the step.
            owner: the Keras model that the step belongs to, or None.
            compiled: trace it for XLA, also where it does not ask for that itself.
        """
        self._function = function
        self._owner = owner
        self._compiled = compiled
        self._keeps_types = hasattr(function, "python_function") or _is_concrete(function)
        self._input_signature = getattr(function, "input_signature", None)
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
            return self._with_arrays(bound.args), bound.kwargs
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

    def trace(self, traced: Traced, arguments: Arguments, places: frozenset[int]) -> Any:
        """The ConcreteFunction for `arguments`; those at `places` carry the batch."""
        specs = narrowed(self._input_signature, arguments, places)
        if specs is None:
            return _concrete(traced.function, *arguments)
        key = tuple(tf.nest.flatten(specs))
        if key not in traced.narrowed:
            traced.narrowed[key] = self._tf_function(specs)
        return _concrete(traced.narrowed[key], *arguments)

    def trace_anew(self, arguments: Arguments, places: frozenset[int], convert: bool = True) -> Any:
        """As `trace`, of what the step's code does now; AutoGraph need not `convert` it."""
        specs = narrowed(self._input_signature, arguments, places)
        return _concrete(self._tf_function(specs, convert), *arguments)

    def note_new_trace(self, arguments: Arguments) -> None:
        """Warn, once, of an argument whose changes cost a new trace again and again."""
        self._changing.note(arguments)

    def _with_arrays(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments for an input signature, lists and numbers made tensors."""
        specs = tuple(self._input_signature or ())[: len(values)]
        made = [_tensor_for(spec, value) for spec, value in zip(specs, values, strict=False)]
        return (*made, *values[len(made) :])

    def _tf_function(self, signature: Any = None, convert: bool = True) -> Any:
        """A tf.function of the step that has not been traced; of a tf.function, its like.

        `signature` may stand for that of a tf.function.
        """
        function: Any = self._function
        if _is_concrete(function):
            return function
        if not hasattr(function, "python_function"):
            # Converted once: a second conversion would exchange the classes of the user's errors.
            return tf.function(
                _with_variables(function, convert),
                autograph=False,
                jit_compile=self._compiled or None,
            )
        return tf.function(
            function.python_function,
            input_signature=signature or function.input_signature,
            **tracing_options(function),
        )


class _OneObject(tf.types.experimental.TraceType):  # type: ignore[misc]
    """The type of one object alone: a call with another one is another call.

    A tf.function takes other variables of the same shape into a trace that it has. A plan belongs
    to the variables that it was made with. And it takes no objects that can't be hashed, or that
    nothing can refer to weakly. A trace has the tensors in the object as constants, so that the
    object with others in it is another call, too.
    """

    def __init__(self, value: Any) -> None:
        self._value = _reference(value)
        self._number = id(value)
        self._tensors = _tensors_in(value)

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
        return (
            value is not None
            and value is other._value()
            and len(self._tensors) == len(other._tensors)
            and all(map(operator.is_, self._tensors, other._tensors))
        )

    def __hash__(self) -> int:
        return self._number


class _Held:
    """A variable among the arguments, or an object that TensorFlow takes for no argument."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __tf_tracing_type__(self, context: Any) -> Any:
        return _OneObject(self.value)


def _reference(value: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(value)
    except TypeError:  # an object with slots; it lives as long as the trace
        return lambda: value


def _tensors_in(value: Any) -> list[Any]:
    """Tensors and arrays that the attributes of `value` are, or hold in lists and dictionaries."""
    if isinstance(value, tf.Variable):
        return []
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    attributes = [getattr(value, name, None) for name in (*getattr(value, "__dict__", ()), *slots)]
    leaves = tf.nest.flatten(attributes)
    return [each for each in leaves if isinstance(each, tf.Tensor | np.ndarray)]


def _held(value: Any) -> Any:
    return _Held(value) if isinstance(value, tf.Variable) or _is_no_argument(value) else value


def _is_no_argument(value: Any) -> bool:
    """Whether TensorFlow would refuse `value`, an object of a class of the user's."""
    kind = type(value)
    if kind.__module__.partition(".")[0] in {"builtins", "numpy", "tensorflow", "keras"}:
        return False
    if hasattr(kind, "__tf_tracing_type__"):
        return False
    # Not `hasattr(kind, "__weakref__")`, which dataclasses with slots have in Python 3.10.
    return kind.__hash__ is None or not kind.__weakrefoffset__


def _with_variables(function: Callable[..., Any], convert: bool) -> Callable[..., Any]:
    """A function that is given `_Held` objects, and gives them to `function` as they are."""

    def release(value: Any) -> Any:
        return value.value if isinstance(value, _Held) else value

    converted: Any = converted_by_autograph(function) if convert else function

    @functools.wraps(function, updated=())
    def with_variables(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tf.nest.map_structure(release, (args, kwargs))
        return converted(*args, **kwargs)

    made: Callable[..., Any] = with_variables
    return made


def _tensor_for(spec: Any, value: Any) -> Any:
    """A list or a number as the tensor that a tf.function makes of it; else `value`."""
    if not isinstance(spec, tf.TensorSpec) or not isinstance(value, list | tuple | int | float):
        return value
    try:
        return tf.convert_to_tensor(value, spec.dtype)
    except (TypeError, ValueError):  # TensorFlow will say what is wrong with it
        return value


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
    return function.get_concrete_function(*args, **kwargs)


class _ChangingArguments:
    """Counts for which arguments a step was traced anew."""

    def __init__(self, signature: inspect.Signature | None) -> None:
        self._signature = signature
        self._before: dict[str, tuple[list[Any], list[Any], list[Any]]] = {}
        self._changes: Counter[tuple[str, str]] = Counter()

    def note(self, arguments: Arguments) -> None:
        """Compare the arguments of a new trace with those of the one before."""
        now = {name: _what_may_change(value) for name, value in self._named(arguments).items()}
        for name, (plain, shapes, inside) in now.items():
            old_plain, old_shapes, old_inside = self._before.get(name, (plain, shapes, inside))
            if plain != old_plain:
                values = f"{old_plain[0]!r}, then {plain[0]!r}" if old_plain and plain else "others"
                how = "pass it as a tensor (tf.constant, or a tf.Variable that you assign to)"
                self._count(name, f"{name!r} has changed again (it was {values})", how)
            elif shapes != old_shapes:
                how = "pad it, or pass batch_size=… where only the batch differs"
                self._count(name, f"the shape of {name!r} has changed again", how)
            elif inside != old_inside:
                how = "pass what is in it as arguments, or in a tuple or a dictionary"
                self._count(name, f"what is in {name!r} has changed again", how)
        self._before = now

    def _count(self, name: str, what: str, how: str) -> None:
        self._changes[name, how] += 1
        if self._changes[name, how] == _CHANGES:
            warn_user(
                "retraced-often",
                f"{what}: each new one is traced again, which takes time and memory; {how}",
            )

    def _named(self, arguments: Arguments) -> dict[str, Any]:
        args, kwargs = arguments
        if self._signature is None:
            return {**{f"argument {number}": each for number, each in enumerate(args)}, **kwargs}
        return dict(self._signature.bind(*args, **kwargs).arguments)


def _what_may_change(value: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Numbers and texts, shapes, and which tensors are in objects."""
    leaves = tf.nest.flatten(value)
    plain = [each for each in leaves if isinstance(each, bool | int | float | complex | str)]
    objects = [each.value for each in leaves if isinstance(each, _Held)]
    inside = [id(tensor) for each in objects for tensor in _tensors_in(each)]
    return plain, [shape_of(each) for each in leaves], inside
