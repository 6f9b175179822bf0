"""Depth first without recursion: views of views may be deeper than Python's stack."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


def finish(
    item: Item,
    finished: Mapping[Key, object],
    key: Callable[[Item], Key],
    needs: Callable[[Item], Iterable[Item]],
    finish_one: Callable[[Item], None],
) -> None:
    """Finish `item` after all that it needs, each once.

    Args:
        finished: what is finished already, by key; `finish_one` adds to it.
        key: of an item.
        needs: the items that must be finished before an item.
        finish_one: called for an item whose needs are all finished.

    Example:
        >>> height = {}
        >>> finish(3, height, int, lambda n: range(n), lambda n: height.update({n: len(height)}))
        >>> height
        {0: 0, 1: 1, 2: 2, 3: 3}
    """
    pending = [item]
    while pending:
        each = pending[-1]
        if key(each) in finished:
            pending.pop()
            continue
        missing = [other for other in needs(each) if key(other) not in finished]
        if missing:
            pending += reversed(missing)
        else:
            finish_one(each)
            pending.pop()


def tensor_key(tensor: object) -> tuple[str, int]:
    """What names a tensor of one graph: its operation's name, and which output it is."""
    return tensor.op.name, tensor.value_index  # type: ignore[attr-defined]
