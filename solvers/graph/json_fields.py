"""Values in the JSON of a graph, and its nodes; `where` is what an error calls the place."""

from __future__ import annotations

import sys
from collections.abc import Collection, Hashable, Iterable, Mapping
from numbers import Real
from typing import Any, cast

from solvers.errors import GraphError
from solvers.graph.node import Node, plain


def number(value: Any, where: str) -> float:
    """A number of zero or more.

    Raises:
        GraphError: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise GraphError("field-invalid", f"{where} is {value!r}; a number is expected")
    found = cast(float, plain(value))
    # A comparison with NaN is false; and, unlike isfinite, it takes an int of any size.
    if not 0 <= found <= sys.float_info.max:
        raise GraphError(
            "field-invalid", f"{where} is {value}; it must be zero or more, and finite"
        )
    return found


def whole_bytes(value: Any, where: str) -> int:
    """A whole number of bytes.

    Raises:
        GraphError: it is not, or more than 63 bits.
    """
    size = number(value, where)
    if size != int(size):
        raise GraphError(
            "field-invalid", f"{where} is {value}; a whole number of bytes is expected"
        )
    if size >= 2**63:
        raise GraphError("bytes-too-many", f"{where} is {value}; that is more than any memory")
    return int(size)


def flag(value: Any, where: str) -> bool:
    """Whether `value` is true; 0 and 1 do as well, a text such as "false" does not.

    Raises:
        GraphError: it is neither.
    """
    if isinstance(value, str) or value not in (False, True):
        raise GraphError("field-invalid", f"{where} is {value!r}; true or false is expected")
    return bool(value)


def several(value: Any, where: str) -> Collection[Any]:
    """A list, or what a graph of networkx may have in its place.

    Raises:
        GraphError: it is not.
    """
    if not isinstance(value, Collection) or isinstance(value, str | Mapping):
        raise GraphError("field-invalid", f"{where} is {value!r}; a list is expected")
    return value


def node(
    raw: Mapping[str, Any],
    where: str,
    relations: Iterable[str],
    number_of: Mapping[Any, int],
    **values: Any,
) -> Node:
    """The node whose fields are in `raw`, but for those in `values`, which are read already.

    Args:
        relations: the fields that refer to nodes.
        number_of: every node that can be referred to.

    Raises:
        GraphError: a field is not what it should be, or refers to a node that is not there.
    """
    for name in relations:
        others = several(raw.get(name, ()), f"{where}.{name}")
        for each in others:
            is_key = isinstance(each, Hashable) and not isinstance(each, bool)
            if not is_key or each not in number_of:
                raise GraphError(
                    "node-unknown", f"{where}.{name} refers to node {each!r}, which is not there"
                )
        values[name] = tuple(number_of[each] for each in others)
    return Node(
        workspace=whole_bytes(raw.get("workspace", 0), f"{where}.workspace"),
        operations=tuple(map(str, several(raw.get("operations", ()), f"{where}.operations"))),
        backward=flag(raw.get("backward", False), f"{where}.backward"),
        recomputable=flag(raw.get("recomputable", True), f"{where}.recomputable"),
        **values,
    )
