"""All kinds by name; a name that two groups share gets its group's name before it."""

from __future__ import annotations

from collections import Counter

from experiments.coverage import (
    as_layers,
    fits,
    generative,
    layers,
    learning,
    loops,
    operations,
    sequences,
    several_networks,
    structured,
)
from experiments.coverage.kind import Kind


def _by_name(kinds: list[Kind]) -> dict[str, Kind]:
    count = Counter(each.name for each in kinds)
    renamed = [
        Kind(f"{each.group}: {each.name}", each.group, each.make) if count[each.name] > 1 else each
        for each in kinds
    ]
    return {each.name: each for each in renamed}


_ROOMS = (
    layers, operations, loops, several_networks, generative, learning, as_layers, sequences,
    structured, fits,
)  # fmt: skip

KINDS = _by_name([kind for room in _ROOMS for kind in room.kinds()])
