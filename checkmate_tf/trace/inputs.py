"""The two kinds of inputs of a ConcreteFunction: what callers give, and what it captured."""

from __future__ import annotations

from typing import Any


def argument_placeholders(concrete: Any) -> list[Any]:
    """One placeholder for each flat argument, in order."""
    return list(concrete.inputs[: len(concrete.inputs) - len(concrete.captured_inputs)])


def captures(concrete: Any) -> list[tuple[Any, Any]]:
    """(placeholder, captured tensor) of variables and other things from outside, in order.

    A variable that is captured twice has one captured tensor, its handle.
    """
    inner = concrete.inputs[len(concrete.inputs) - len(concrete.captured_inputs) :]
    return list(zip(inner, concrete.captured_inputs, strict=True))
