"""Least memory on an arbitrary forward graph by independent segments (Feng and Huang, CVPR 2021).

Checkpoints are chosen such that only two of them connect each piece between them with the rest;
each piece is recomputed once, as a whole. The objective is that of Chen et al. (2016):

    Σ of the checkpoints + the largest piece            in bytes

For a cap on the pieces, the least Σ of a line of segments is a shortest path in its accessibility
graph, whose edges are the pieces under the cap; branches and rigid segments are divided only where
they are over the cap (see `solvers.checkpointing.independent_segments`). All caps are tried that
can be best. The input is held anyway; the last node of the forward pass is a checkpoint.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from solvers.checkpointing.cheapest import Matrices, cheapest
from solvers.checkpointing.independent_segments import Division, Segment, divide
from solvers.checkpointing.pieces import connected_pieces, forward_graph, piece_matrices
from solvers.checkpointing.segmentation import Capped, Segmentation, least_over_caps
from solvers.graph import ComputationGraph
from solvers.problem import Problem, Solution

_INPUT = -1
"""The node that stands for what comes before the first one."""

_SWEPT = 100
"""Caps that are tried besides the best one, evenly from none to all of the forward pass."""


def solve_feng_huang(problem: Problem) -> Solution:
    """The cheapest plan that fits, of the one with the least objective and those of other caps."""
    return cheapest(problem, "feng_huang", feng_huang_plans(problem.graph))


def feng_huang_plans(graph: ComputationGraph) -> Iterator[Matrices]:
    """(R, S) of the least objective, and then of every different choice under a range of caps."""
    pieces = Pieces(graph)
    chosen = [pieces.least().checkpoints]
    for number in range(_SWEPT + 1):
        cap = pieces.least_cap + (pieces.total - pieces.least_cap) * number // _SWEPT
        chosen.append(pieces.under(cap)[2])
    for checkpoints in dict.fromkeys(chosen):
        yield piece_matrices(graph, checkpoints)


class Pieces:
    """The division of a forward pass, and the least checkpoints under any cap on its pieces.

    Attributes:
        total: bytes of the forward pass.
        least_cap: bytes of the largest piece that no choice divides.

    Example:
        >>> from solvers.graph.layer_graphs import Layer, layer_graph
        >>> table = [(1, ()), (8, (0,)), (8, (1,)), (1, (0, 2)), (6, (3,)), (1, (4,))]
        >>> layers = [Layer("", 1, size, inputs=read) for size, read in table]
        >>> Pieces(layer_graph("skip", layers)).least()  # fp32; node 1 is the largest piece
        Segmentation(checkpoints=(0, 2, 3, 5), objective=76)
    """

    def __init__(self, graph: ComputationGraph) -> None:
        self.graph = graph
        self.forward = forward_graph(graph)
        self.total = self._bytes(self.forward)
        self.last = len(self.forward) - 1
        self.division = Division([])
        if len(self.forward):
            with_input = self.forward.copy()
            with_input.add_edge(_INPUT, 0)
            self.division = divide(with_input, _INPUT, self.last)
        hanging = self.division.hanging
        self.hanging = {i: sum(map(self._bytes, parts)) for i, parts in hanging.items()}
        self.least_cap = max(
            (self._bytes(part) for parts in hanging.values() for part in parts), default=0
        )
        self.inside = [sum(self._weight(i) for i in each.nodes) for each in self.division.segments]

    def least(self) -> Segmentation:
        """The least objective of all."""
        if not self.division.segments:
            return Segmentation((), 0)
        return least_over_caps(self.under, max(self.total, self.least_cap), self.least_cap)

    def under(self, cap: int) -> Capped:
        """The least Σ of checkpoints with no more than `cap` bytes in any piece."""
        segments = self.division.segments
        held = [0] * len(segments)
        cuts: list[list[int]] = [[]] * len(segments)
        for number in reversed(range(len(segments))):  # parts come after what they are part of
            if self.inside[number] > cap:
                held[number], cuts[number] = self._cut(segments[number], held, cap)
        checkpoints = tuple(sorted({*range(self.last, len(self.forward))}.union(*cuts)))
        return self._bytes(checkpoints), self._largest(checkpoints), checkpoints

    def _bytes(self, nodes: Iterable[int]) -> int:
        return sum(self.graph.nodes[i].memory for i in nodes)

    def _weight(self, node: int) -> int:
        """Bytes of a node that is inside a piece, and of what hangs on it."""
        return self.graph.nodes[node].memory + self.hanging.get(node, 0)

    def _largest(self, checkpoints: Iterable[int]) -> int:
        pieces = connected_pieces(self.forward, checkpoints)
        return max((self._bytes(piece) for piece in pieces), default=0)

    def _cut(self, segment: Segment, held: list[int], cap: int) -> tuple[int, list[int]]:
        """The least Σ inside a segment that is over the cap, and which of its cuts that takes."""
        if segment.kind == "line":
            return self._cut_line(segment, held, cap)
        cuts = list(segment.cuts)
        return self._bytes(cuts) + sum(held[part] for part in segment.parts), cuts

    def _cut_line(self, line: Segment, held: list[int], cap: int) -> tuple[int, list[int]]:
        """The shortest path in the accessibility graph of a line, its cuts being the nodes.

        Place 0 is the start of the line. An edge leads from one place to another if what is between
        is under the cap, and in any case to the next, at the price of cutting what is between.
        """
        places = (line.start, *line.cuts, line.end)
        least, previous = [0], [0]
        upto = [0]  # bytes from the start of the line up to a place and with it
        window: deque[int] = deque([0])  # places that lead to this one, least strictly rising
        first = 0
        for place, part in enumerate(line.parts, start=1):
            before = upto[-1] + self.inside[part]
            while first < place - 1 and before - upto[first] > cap:
                first += 1
            while window[0] < first:
                window.popleft()
            is_end = place == len(line.parts)
            own = 0 if is_end else self.graph.nodes[places[place]].memory
            previous.append(window[0])
            least.append(least[window[0]] + held[part] + own)
            upto.append(before if is_end else before + self._weight(places[place]))
            while window and least[window[-1]] >= least[place]:
                window.pop()
            window.append(place)
        cuts = []
        place = previous[-1]
        while place:
            cuts.append(places[place])
            place = previous[place]
        return least[-1], cuts
