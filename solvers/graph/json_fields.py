"""Values in the JSON of a graph; `where` is what an error calls the place."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from numbers import Real
from typing import Any, cast

from solvers.errors import GraphError
from solvers.graph.node import plain


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
