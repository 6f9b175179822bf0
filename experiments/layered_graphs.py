"""Random layered graphs like those of the literature, of any size.

The public instances (Moccasin, ICML 2023) come from the generator of Gagrani et al. (NeurIPS
2022): about n^0.57 layers of n^0.43 nodes, widths that differ by up to three quarters, and one
edge in seven that skips layers. These here are drawn by the same rules with as many edges; they
are not the same graphs.
"""

from __future__ import annotations

import itertools
import random

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
    layers: list[range] = []
    while not layers or layers[-1].stop < nodes:
        start = layers[-1].stop if layers else 0
        width = nodes**_WIDTH * draw.uniform(1 - _VARIABILITY, 1 + _VARIABILITY)
        layers.append(range(start, min(nodes, start + max(1, round(width)))))
    reads = _reads(draw, layers, edges)
    made = [
        Node(
            f"v{number}",
            cost=draw.randint(1, 1000),
            memory=20 + int(min(8000.0, draw.expovariate(1 / 2000))),
            dependencies=tuple(sorted(reads[number])),
        )
        for number in range(nodes)
    ]
    return ComputationGraph(tuple(made), name=f"layered {nodes}")


def _reads(draw: random.Random, layers: list[range], edges: int) -> list[set[int]]:
    """Whom every node reads: one of the layer before it, then more until there are `edges`."""
    reads: list[set[int]] = [set() for _ in range(layers[-1].stop)]
    for before, layer in itertools.pairwise(layers):
        for number in layer:
            reads[number].add(draw.choice(before))
    count = sum(map(len, reads))
    while count < edges:
        place = draw.randrange(1, len(layers))
        is_skip = place > 1 and draw.random() < _SKIPS
        source = layers[draw.randrange(place - 1) if is_skip else place - 1]
        chosen, reader = draw.choice(source), draw.choice(layers[place])
        count += chosen not in reads[reader]
        reads[reader].add(chosen)
    return reads
