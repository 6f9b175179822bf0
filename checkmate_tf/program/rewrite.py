"""From a ConcreteFunction and a schedule to a callable that runs it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import tensorflow as tf

from checkmate_tf.collector import collector_paused
from checkmate_tf.devices.current import current_device
from checkmate_tf.graph.extraction import Extraction, extract_step
from checkmate_tf.phases import phase
from checkmate_tf.program.emit import emit
from checkmate_tf.program.lower import lower
from checkmate_tf.trace.inlining import as_traced
from checkmate_tf.trace.inputs import argument_placeholders
from profiles.tensorflow_internals import (
    a_tape_may_record,
    bound_arguments,
    is_traced_for_xla,
    note_variables,
)
from solvers import Schedule, simulate

Emit = Callable[[Sequence[Any]], list[Any]]


def rewrite(concrete: Any, schedule: Schedule, batch_size: int | None = None) -> Callable[..., Any]:
    """A callable that computes what `concrete` computes, in the order of `schedule`.

    It takes the arguments of `concrete`. Called while a function is being traced, it becomes
    part of that function; else it runs as a tf.function of its own. In a function that XLA
    compiles, the order is in the data. Under a tf.GradientTape `concrete` itself runs.

    Args:
        concrete: the function that the schedule was made for.
        schedule: node numbers of `extract(concrete, batch_size)`.
        batch_size: as given to `extract`.

    Raises:
        ScheduleError: the schedule does not fit the function.

    Example:
        >>> import tensorflow as tf
        >>> from checkmate_tf import extract
        >>> from solvers import Schedule
        >>> step = tf.function(lambda x: tf.reduce_sum(tf.nn.softmax(x @ x)))
        >>> concrete = step.get_concrete_function(tf.TensorSpec((64, 64)))
        >>> again = rewrite(concrete, Schedule(range(len(extract(concrete)))))
        >>> float(again(tf.eye(64))) == float(concrete(tf.eye(64)))
        True
    """
    return rewrite_extracted(extract_step(concrete, batch_size), schedule)


def rewrite_extracted(
    extracted: Extraction,
    schedule: Schedule,
    function: Callable[..., Any] | None = None,
    compiled: bool = False,
) -> Callable[..., Any]:
    """As `rewrite`, for a function whose graph has been extracted already.

    `function` is what `as_function` made of them, if it has been called before. `compiled` is as
    for `in_place_of`.
    """
    simulate(extracted.graph, schedule)
    emit = partial(emit_schedule, extracted, schedule)
    return in_place_of(extracted.program.concrete, emit, function, compiled)


def emit_schedule(extracted: Extraction, schedule: Schedule, arguments: Sequence[Any]) -> list[Any]:
    """Create what `schedule` says in the default graph, for the executor or for XLA."""
    device = current_device().compiled() if is_traced_for_xla() else current_device()
    return emit(extracted.program, lower(extracted, schedule, device), arguments, device)


def in_place_of(
    concrete: Any,
    emit: Emit,
    function: Callable[..., Any] | None = None,
    compiled: bool = False,
) -> Callable[..., Any]:
    """A callable that does what `emit` creates, with the arguments and results of `concrete`.

    Under a tape it calls `concrete`: a tape keeps whatever a gradient may need, in any order, and
    the user's own gradients (`tf.custom_gradient`) are known for the operations of `concrete` only.

    Args:
        concrete: the traced step.
        emit: creates operations in the default graph; from one tensor for each flat argument to
            one for each flat output.
        function: what `function_of` made of them, if it has been called before.
        compiled: XLA must compile it, wherever it is called.
    """

    @functools.cache
    def alone() -> Callable[..., Any]:
        return function or function_of(concrete, emit, compiled)

    def call(*args: Any, **kwargs: Any) -> Any:
        if a_tape_may_record():
            return as_traced(concrete)(*args, **kwargs)
        flat = _flat_arguments(concrete, args, kwargs)
        if tf.inside_function() and (is_traced_for_xla() or not compiled):
            note_variables(as_traced(concrete))
            return pack_outputs(concrete, emit(flat))
        return pack_outputs(concrete, alone()(*flat))

    return call


def _flat_arguments(concrete: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The tensors among the arguments of `concrete`, which may also be given by themselves."""
    try:
        bound = bound_arguments(concrete.function_type, args, kwargs)
    except TypeError:
        if kwargs or len(args) != len(argument_placeholders(concrete)):
            raise
        return [tf.convert_to_tensor(each) for each in args]
    flat: list[Any] = concrete.function_type.unpack_inputs(bound)
    return flat


def as_function(extracted: Extraction, schedule: Schedule) -> Any:
    """A ConcreteFunction from the flat arguments of the traced step to its flat outputs."""
    return function_of(extracted.program.concrete, partial(emit_schedule, extracted, schedule))


def function_of(concrete: Any, emit: Emit, compiled: bool = False) -> Any:
    """As `as_function`, of what `emit` creates; XLA compiles it where `compiled` says so."""
    specs = [tf.TensorSpec(each.shape, each.dtype) for each in argument_placeholders(concrete)]

    # A name without "<lambda>": with it TensorFlow would not find the lines of an error.
    def rematerialized(*arguments: Any) -> list[Any]:
        return emit(arguments)

    function = tf.function(
        rematerialized, input_signature=specs, autograph=False, jit_compile=compiled or None
    )
    # Called by itself the tf.function would be counted among those that are traced too often.
    with phase("emit"), collector_paused():
        return function.get_concrete_function()


def pack_outputs(concrete: Any, outputs: list[Any]) -> Any:
    """The flat outputs in the structure that the traced function returned."""
    flat = tf.nest.flatten(concrete.structured_outputs, expand_composites=True)
    values = iter(outputs)
    filled = [next(values) if isinstance(each, tf.Tensor) else each for each in flat]
    return tf.nest.pack_sequence_as(concrete.structured_outputs, filled, expand_composites=True)
