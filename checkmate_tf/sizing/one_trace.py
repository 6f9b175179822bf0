"""One trace of a step for its example, ahead of the first call."""

from __future__ import annotations

from typing import Any

from checkmate_tf.batches.examples import example_batch, specs_of
from checkmate_tf.sizing.arguments import Target, parse_example
from checkmate_tf.trace.tracer import Tracer


def traced_for(
    target: Target, batch: Any, batch_size: int | None = None, compiled: bool = False
) -> Any:
    """The ConcreteFunction of a step for an example of what it is called with.

    Args:
        target: the step.
        batch: the example, as `largest_batch` takes it, with a batch dimension or without; None
            where the step's own signature says it.
        batch_size: the largest batch that occurs, where there are several; then the trace is for
            batches of any size, else for the example's.
        compiled: as XLA compiles it.

    Raises:
        CheckmateError: the example doesn't fit the step, or has no batch dimension and needs one.
    """
    given = parse_example(batch, target)
    if given is None:
        return traced_with(target, None)
    if batch_size is None:
        arguments = specs_of(given.arguments, given.floats)
    else:
        arguments = example_batch(given.arguments, given.names, given.floats).at(None)
    return traced_with(target, arguments, compiled)


def traced_with(target: Target, arguments: tuple[Any, ...] | None, compiled: bool = False) -> Any:
    """As `traced_for`, of arguments as types; None where the step's own signature says them."""
    if arguments is None:
        function: Any = target.function
        return getattr(function, "get_concrete_function", lambda: function)()
    tracer = Tracer(target.function, target.model, compiled)
    # No places: types of tensors say by themselves what any batch leaves open.
    return tracer.trace(tracer.traced(), tracer.bind(arguments, {}), frozenset())
