"""A node of a computation graph: a unit of work that is computed as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any


@dataclass(frozen=True, slots=True)
class Node:
    """A unit of work that is computed as a whole: one operation, or a few that stay together.

    Attributes:
        name: what a person calls it.
        cost: time of one computation, in the graph's `cost_unit`.
        memory: bytes of its outputs that others read.
        workspace: bytes needed only while it runs.
        operations: the types of the operations it is made of.
        backward: part of the backward pass.
        recomputable: may be computed more than once; stateful operations may not.
        dependencies: nodes whose outputs this one reads; kept ascending, each once.
        after: nodes that must be computed once before its first computation; nothing is read.
        expired_by: nodes after whose first computation this one can no longer be computed,
            because they overwrite a variable that it reads.
        id: what its file calls it; its number where nothing else was said.
    """

    name: str
    cost: float
    memory: int
    workspace: int = 0
    operations: tuple[str, ...] = ()
    backward: bool = False
    recomputable: bool = True
    dependencies: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    expired_by: tuple[int, ...] = ()
    id: int | str | None = None

    def __post_init__(self) -> None:
        numbers = (self.memory, self.workspace, *self.dependencies, *self.after, *self.expired_by)
        # Large graphs are made often, nearly always of Python's own numbers.
        if type(self.cost) not in (float, int) or set(map(type, numbers)) != {int}:
            self._make_plain()
        object.__setattr__(self, "dependencies", tuple(sorted(set(self.dependencies))))

    def _make_plain(self) -> None:
        object.__setattr__(self, "cost", plain(self.cost))
        for name in ("memory", "workspace"):
            size = plain(getattr(self, name))
            is_whole = isinstance(size, float) and size.is_integer()
            object.__setattr__(self, name, int(size) if is_whole else size)
        for name in ("dependencies", "after", "expired_by"):
            object.__setattr__(self, name, tuple(map(plain, getattr(self, name))))


def plain(value: Any) -> Any:
    """A number, such as numpy's, as Python's own, which JSON can hold; others as they are.

    Example:
        >>> import numpy as np
        >>> plain(np.int64(4)), plain(0.5)
        (4, 0.5)
    """
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value
