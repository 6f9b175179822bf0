"""The two kinds of inputs of a ConcreteFunction: what callers give, and what it captured."""

from __future__ import annotations

from typing import Any

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
