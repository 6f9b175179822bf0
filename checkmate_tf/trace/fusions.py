"""Which operations oneDNN's graph pass fuses into one kernel, whatever control edges say.

Which these are, `profiles.operation_facts` says. Nodes keep such operations together
(`graph.contraction`), costs take them as one (`graph.step_operations`, `profiles.fusion`), and
rewritten steps put no control edge between them (`program.order`).
"""

from __future__ import annotations

from typing import Any

from profiles.operation_facts import facts


def fuses_into(producer: str, reader: str) -> bool:
    """Whether operations of these types are fused where nobody else reads the producer.

    Example:
        >>> fuses_into("Conv2D", "BiasAdd"), fuses_into("BiasAdd", "Conv2D")
        (True, False)
    """
    return reader in facts(producer).fuses_into


def sibling_of(kind: str) -> str | None:
    """The type that a filter's gradient is fused with, where both read the same gradient."""
    return facts(kind).sibling


def may_fuse(first: str, second: str) -> bool:
    """Whether operations of these types, created in this order, may be fused.

    Example:
        >>> may_fuse("BiasAddGrad", "Conv2DBackpropFilter"), may_fuse("BiasAdd", "Conv2D")
        (True, False)
    """
    return fuses_into(first, second) or sibling_of(first) == second or sibling_of(second) == first


def shared_gradient(operation: Any) -> Any | None:
    """The tensor by which siblings find each other; None if the operation has no sibling."""
    place = facts(operation.type).shared_gradient
    return None if place is None else operation.inputs[place]
