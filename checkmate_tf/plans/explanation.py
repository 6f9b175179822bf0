"""Why a layer is kept or recomputed: for whom, at what cost, and what keeping it would take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from checkmate_tf.plans.layers import layer_names
from solvers import CheckmateError, ComputationGraph, Schedule, format_bytes, simulate
from solvers.graph.lifetimes import readers

_READERS = 3
"""Of a value are named; the others are counted."""


@dataclass(frozen=True)
class Computation:
    """One computation of a node.

    Attributes:
        place: of it in the schedule, from 0.
        until: place of the last step that reads its value.
        readers: names of the nodes that read it.
        kept_instead: bytes at which live values would peak if the value before it had been kept;
            None of the first computation.
    """

    place: int
    until: int
    readers: tuple[str, ...]
    kept_instead: int | None = None


@dataclass(frozen=True)
class Fate:
    """What becomes of one node.

    Attributes:
        name: of the node.
        operations: types of what runs in it.
        bytes: of its value.
        cost: of one computation, in the graph's unit.
        line: of the user's program that made it, "file:line"; "" where that is not known.
        computations: each of them, in order.
    """

    name: str
    operations: tuple[str, ...]
    bytes: int
    cost: float
    line: str
    computations: tuple[Computation, ...]


@dataclass(frozen=True)
class Explanation:
    """What a plan does with a layer, and why; its text says it.

    Attributes:
        layer: its name.
        nodes: what becomes of each of its nodes, in the order in which they first run.
        peak: bytes at which live values peak by the plan.
        unit: of costs.
    """

    layer: str
    nodes: tuple[Fate, ...]
    peak: int
    unit: str

    def __repr__(self) -> str:
        again = [each for each in self.nodes if len(each.computations) > 1]
        extra = sum(each.cost * (len(each.computations) - 1) for each in again)
        lines = [
            f"{self.layer}: {len(again)} of {len(self.nodes)} nodes recomputed, "
            f"{self._cost(extra)} more; live values peak at {format_bytes(self.peak)}"
        ]
        for each in self.nodes:
            lines += ["", *self._told(each)]
        return "\n".join(lines)

    def _told(self, node: Fate) -> list[str]:
        lines = [node.name, f"  {' + '.join(node.operations)}, {format_bytes(node.bytes)}"]
        if node.line:
            lines.append(f"  made at {node.line}")
        for each in node.computations:
            if each.kept_instead is None:
                lines.append(f"  computed at step {each.place + 1}, {self._held(each)}")
                continue
            lines.append(
                f"  recomputed at step {each.place + 1} ({self._cost(node.cost)}), "
                f"{self._held(each)}"
            )
            lines.append(f"    kept instead: live values peak at {format_bytes(each.kept_instead)}")
        return lines

    def _held(self, computation: Computation) -> str:
        if not computation.readers:
            return "read by none"
        named = ", ".join(computation.readers[:_READERS])
        more = len(computation.readers) - _READERS
        others = f" and {more} more" if more > 0 else ""
        return f"held until step {computation.until + 1} for {named}{others}"

    def _cost(self, cost: float) -> str:
        return f"{1000 * cost:.2f} ms" if self.unit == "s" else f"{cost:.4g} {self.unit}".strip()


def explain(
    graph: ComputationGraph, schedule: Schedule, layer: str, lines: Sequence[str] = ()
) -> Explanation:
    """What a schedule does with a layer, and why.

    Args:
        graph: of the schedule.
        schedule: it.
        layer: the name of a layer, or of a node.
        lines: of the user's program, one for each node.

    Raises:
        CheckmateError: there is no such layer.

    Example:
        >>> from solvers import Node
        >>> conv = Node("conv", 2.0, 4, operations=("Conv2D",))
        >>> loss = Node("loss", 1.0, 6, dependencies=(0,), operations=("Sum",))
        >>> gradient = Node("gradient", 1.0, 1, dependencies=(0,), after=(1,), operations=("Mul",))
        >>> graph = ComputationGraph((conv, loss, gradient))
        >>> explain(graph, Schedule([0, 1, 0, 2]), "conv")
        conv: 1 of 1 nodes recomputed, 2 more; live values peak at 10 B
        <BLANKLINE>
        conv
          Conv2D, 4 B
          computed at step 1, held until step 2 for loss
          recomputed at step 3 (2), held until step 4 for gradient
            kept instead: live values peak at 10 B
    """
    names = layer_names(graph)
    chosen = [n for n, name in enumerate(names) if layer in (name, graph.nodes[n].name)]
    if not chosen:
        near = get_close_matches(layer, dict.fromkeys(names), n=5, cutoff=0.5)
        hint = f"near it are {', '.join(near)}" if near else "`print(plan)` lists the largest"
        raise CheckmateError("layer-unknown", f"no layer {layer!r} in {graph.name!r}; {hint}")
    read_by = readers(graph, schedule)
    fates = []
    for number in chosen:
        node = graph.nodes[number]
        places = [place for place, each in enumerate(schedule.steps) if each == number]
        computations = tuple(
            Computation(
                place,
                max(read_by[place], default=place),
                tuple(dict.fromkeys(graph.nodes[schedule.steps[r]].name for r in read_by[place])),
                _peak_without(graph, schedule, place) if place != places[0] else None,
            )
            for place in places
        )
        line = lines[number] if number < len(lines) else ""
        fates.append(Fate(node.name, node.operations, node.memory, node.cost, line, computations))
    fates.sort(key=lambda fate: fate.computations[0].place)
    return Explanation(layer, tuple(fates), simulate(graph, schedule).peak, graph.cost_unit)


def _peak_without(graph: ComputationGraph, schedule: Schedule, place: int) -> int:
    """Bytes at the peak without this computation, so that the one before it is kept for longer."""
    steps = schedule.steps
    return simulate(graph, Schedule((*steps[:place], *steps[place + 1 :]))).peak
