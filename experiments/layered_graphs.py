"""Random layered graphs like those of the literature, of any size.

The public instances (Moccasin, ICML 2023) come from the generator of Gagrani et al. (NeurIPS
2022): about n^0.57 layers of n^0.43 nodes, widths that differ by up to three quarters, and one
edge in seven that skips layers; a source that feeds the first layer, a node that reads whatever
nobody else does, a last node, and the nodes in a random order that respects the edges. These here
are drawn by the same rules with as many edges; they are not the same graphs.
"""

from __future__ import annotations

import itertools
import random
from graphlib import TopologicalSorter

from solvers import ComputationGraph, Node

SIZES = {100: 236, 250: 944, 500: 2461, 1000: 5875}
"""Nodes and edges of the public instances."""

_WIDTH, _VARIABILITY, _SKIPS = 0.43, 0.75, 0.14


def layered_graph(nodes: int, edges: int, seed: int = 0) -> ComputationGraph:
    """A graph of `nodes` nodes and `edges` edges; costs are uniform, memories exponential.

    Example:
        >>> graph = layered_graph(100, 236)
        >>> len(graph), len(graph.edges)
        (100, 236)
    """
    draw = random.Random(seed)
    layers = [range(1)]
    while layers[-1].stop < nodes - 2:
        start = layers[-1].stop
        width = nodes**_WIDTH * draw.uniform(1 - _VARIABILITY, 1 + _VARIABILITY)
        layers.append(range(start, min(nodes - 2, start + max(1, round(width)))))
    reads = _reads(draw, layers, edges)
    order = _random_order(draw, reads)
    rank = {number: place for place, number in enumerate(order)}
    made = [
        Node(
            f"v{number}",
            cost=draw.randint(1, 1000) if 0 < number < nodes - 1 else 0,
            memory=20 + int(min(8000.0, draw.expovariate(1 / 2000))),
            dependencies=tuple(sorted(rank[each] for each in reads[number])),
        )
        for number in order
    ]
    return ComputationGraph(tuple(made), name=f"layered {nodes}")


def _reads(draw: random.Random, layers: list[range], edges: int) -> list[set[int]]:
    """Whom every node reads: one of the layer before it, then more until there are `edges`.

    The last but one reads what nobody else does, the last reads that.
    """
    inner = layers[-1].stop
    reads: list[set[int]] = [set() for _ in range(inner + 2)]
    for before, layer in itertools.pairwise(layers):
        for number in layer:
            reads[number].add(draw.choice(before))
    reads[inner + 1].add(inner)
    unread = set(range(inner)).difference(*reads)
    count = sum(map(len, reads)) + len(unread)
    while count < edges:
        place = draw.randrange(2, len(layers))
        is_skip = draw.random() < _SKIPS
        source = layers[draw.randrange(place - 1) if is_skip else place - 1]
        chosen, reader = draw.choice(source), draw.choice(layers[place])
        if chosen in reads[reader]:
            continue
        count += chosen not in unread
        unread.discard(chosen)
        reads[reader].add(chosen)
    reads[inner] = unread
    return reads


def _random_order(draw: random.Random, reads: list[set[int]]) -> list[int]:
    """All nodes, each after what it reads."""
    sorter = TopologicalSorter(dict(enumerate(reads)))
    sorter.prepare()
    ready: list[int] = []
    order = []
    while sorter.is_active():
        ready.extend(sorted(sorter.get_ready()))
        order.append(ready.pop(draw.randrange(len(ready))))
        sorter.done(order[-1])
    return order
