"""The two kinds of inputs of a ConcreteFunction: what callers give, and what it captured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from checkmate_tf.trace.depth_first import finish
from profiles.tensorflow_internals import captured_tensors


def argument_placeholders(concrete: Any) -> list[Any]:
    """One placeholder for each flat argument, in order."""
    return list(concrete.inputs[: len(concrete.inputs) - len(captured_tensors(concrete))])


def captures(concrete: Any) -> list[tuple[Any, Any]]:
    """(placeholder, captured tensor) of variables and other things from outside, in order.

    A variable that is captured twice has one captured tensor, its handle. What is made anew at
    every call, as the number of an exchange between replicas, is its own placeholder here.
    """
    inner = concrete.inputs[len(concrete.inputs) - len(captured_tensors(concrete)) :]
    captured = captured_tensors(concrete)
    return [
        (placeholder, placeholder if callable(each) else each)
        for placeholder, each in zip(inner, captured, strict=True)
    ]


def waiting_for_arguments(concrete: Any, operations: Iterable[Any]) -> set[str]:
    """Names of those of its operations that can't run before the arguments are there."""
    arguments = {each.op.name for each in argument_placeholders(concrete)}
    waits: dict[str, bool] = {}

    def finish_one(operation: Any) -> None:
        name = operation.name
        waits[name] = name in arguments or any(waits[each.name] for each in _before(operation))

    wanted = list(operations)
    for each in wanted:
        finish(each, waits, lambda operation: operation.name, _before, finish_one)
    return {each.name for each in wanted if waits[each.name]}


def _before(operation: Any) -> Iterator[Any]:
    yield from (each.op for each in operation.inputs)
    yield from operation.control_inputs
