"""Divides a forward graph into independent segments, which only two nodes connect with the rest.

The division is that of Feng and Huang (CVPR 2021): a segment is a line of smaller ones, one after
another; or branches side by side; or else *rigid*, several segments that are joined in another
way. Edges count in both directions. Where every node is between input and output, a single value
enters a segment and a single one leaves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

import networkx as nx

Kind = Literal["edge", "line", "branches", "rigid"]


@dataclass(frozen=True)
class Segment:
    """What lies between `start` and `end`, which are not part of it.

    Attributes:
        start, end: the two nodes through which it is connected with the rest.
        nodes: all that is inside.
        direct: an edge from `start` to `end` is part of it.
        kind: "edge" has nothing inside.
        cuts: the nodes inside between which the parts are; of a line in order.
        parts: the smaller segments, by their place in `Division.segments`; of a line in order,
            one more than cuts.
    """

    start: int
    end: int
    nodes: frozenset[int]
    direct: bool = False
    kind: Kind = "edge"
    cuts: tuple[int, ...] = ()
    parts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Division:
    """A graph between its input and its output, divided as far as possible.

    Attributes:
        segments: the whole graph first, every segment before its parts.
        hanging: for nodes with something that only they connect with the rest, these parts, each
            connected; they are not divided. What is not connected at all is under the output.
    """

    segments: list[Segment]
    hanging: dict[int, list[frozenset[int]]] = field(default_factory=dict)


def divide(graph: nx.Graph[int], source: int, target: int) -> Division:
    """Divide an undirected graph between `source` and `target`.

    Example:
        >>> import networkx as nx
        >>> skip = nx.Graph([(0, 1), (1, 2), (2, 3), (1, 3), (3, 4), (2, 9)])
        >>> found = divide(skip, 0, 4)
        >>> [(each.kind, each.start, each.end) for each in found.segments[:3]]
        [('line', 0, 4), ('edge', 0, 1), ('branches', 1, 3)]
        >>> found.hanging  # only node 2 knows it
        {2: [frozenset({9})]}
    """
    main = _between(graph, source, target)
    segments = [_segment(graph, source, target, main - {source, target})]
    for place, whole in enumerate(segments):  # which grows
        kind, cuts, parts = _divided(graph, whole)
        numbers = range(len(segments), len(segments) + len(parts))
        segments[place] = replace(whole, kind=kind, cuts=tuple(cuts), parts=tuple(numbers))
        segments += parts
    return Division(segments, _hanging(graph, main, target))


def _between(graph: nx.Graph[int], source: int, target: int) -> frozenset[int]:
    """The nodes of `graph` that lie on some path without repetition from one to the other."""
    closed = nx.Graph(graph)
    closed.add_edge(source, target)
    return frozenset(_block(closed, source, target))


def _block(graph: nx.Graph[int], *members: int) -> set[int]:
    """The largest set of nodes, with these among them, that no single node cuts apart."""
    return next(each for each in nx.biconnected_components(graph) if each.issuperset(members))


def _hanging(
    graph: nx.Graph[int], main: frozenset[int], target: int
) -> dict[int, list[frozenset[int]]]:
    hanging: dict[int, list[frozenset[int]]] = {}
    for part in nx.connected_components(graph.subgraph(set(graph) - main)):
        hosts = {other for node in part for other in graph[node]} & main
        hanging.setdefault(min(hosts, default=target), []).append(frozenset(part))
    return hanging


def _segment(graph: nx.Graph[int], start: int, end: int, nodes: Iterable[int]) -> Segment:
    return Segment(start, end, frozenset(nodes), graph.has_edge(start, end))


def _divided(graph: nx.Graph[int], whole: Segment) -> tuple[Kind, list[int], list[Segment]]:
    """Kind, cuts and parts of a segment."""
    start, end = whole.start, whole.end
    if not whole.nodes:
        return "edge", [], []
    branches = _branches(graph, whole)
    if len(branches) > 1:
        return "branches", [], branches
    inner = nx.Graph(graph.subgraph({*whole.nodes, start, end}))
    if inner.has_edge(start, end):
        inner.remove_edge(start, end)
    cuts = set(nx.articulation_points(inner))
    if cuts:
        return "line", *_line(inner, whole, cuts)
    return "rigid", *_rigid(inner, whole)


def _branches(graph: nx.Graph[int], whole: Segment) -> list[Segment]:
    start, end = whole.start, whole.end
    insides = sorted(nx.connected_components(graph.subgraph(whole.nodes)), key=min)
    found = [Segment(start, end, frozenset(inside)) for inside in insides]
    return [*found, Segment(start, end, frozenset(), direct=True)] if whole.direct else found


def _line(inner: nx.Graph[int], whole: Segment, cuts: set[int]) -> tuple[list[int], list[Segment]]:
    """The cuts in order, and what is between them."""
    path = nx.shortest_path(inner, whole.start, whole.end)
    ends = [each for each in path if each in {*cuts, whole.start, whole.end}]
    places = {node: place for place, node in enumerate(ends)}
    insides: list[set[int]] = [set() for _ in range(len(ends) - 1)]
    for inside in nx.connected_components(inner.subgraph(whole.nodes - cuts)):
        bounds = _neighbours(inner, inside) & places.keys()
        insides[min(places[each] for each in bounds)] |= inside
    parts = [
        _segment(inner, left, right, inside)
        for (left, right), inside in zip(pairwise(ends), insides, strict=True)
    ]
    return ends[1:-1], parts


def _rigid(inner: nx.Graph[int], whole: Segment) -> tuple[list[int], list[Segment]]:
    """The largest segments inside, and the nodes between them, which are cut all or not at all.

    The largest segments share no edge. Cutting only some of the nodes between them would leave
    something that three nodes or more connect with the rest.
    """
    start, end = whole.start, whole.end
    inner.add_edge(start, end)
    taken: set[int] = set()
    parts: list[Segment] = []
    for piece in sorted(_pieces(inner, start, end), key=lambda each: -len(each.nodes)):
        if not taken & piece.nodes:
            taken |= piece.nodes
            parts.append(piece)
    cuts = sorted(whole.nodes - taken)
    joined = {frozenset((each.start, each.end)) for each in (whole, *parts)}
    between = inner.subgraph({start, end, *cuts}).edges
    edges = [(left, right) for left, right in between if frozenset((left, right)) not in joined]
    return cuts, parts + [_segment(inner, left, right, ()) for left, right in edges]


def _pieces(inner: nx.Graph[int], start: int, end: int) -> Iterator[Segment]:
    """For every first node the largest segments that it begins, `start` and `end` never inside."""
    for first in inner:
        if inner.degree[first] < 3 and first not in (start, end):
            continue
        rest = inner.subgraph(set(inner) - {first})
        core = _block(rest, *({start, end} - {first}))
        beyond: dict[int, set[int]] = {}
        for part in nx.connected_components(rest.subgraph(set(rest) - core)):
            (host,) = _neighbours(rest, part) & core
            beyond.setdefault(host, set()).update(part)
        for host, nodes in beyond.items():
            yield _segment(inner, first, host, nodes)


def _neighbours(graph: nx.Graph[int], nodes: Iterable[int]) -> set[int]:
    return {other for node in nodes for other in graph[node]}
