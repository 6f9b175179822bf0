"""Tiny named graphs with exact expected optima, shared by all solver tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import strategies as st

from solvers import ComputationGraph, Node
from solvers.graph.layer_graphs import Layer, layer_graph, unit_chain

_SHARED = Path(__file__).parents[2] / "shared" / "graphs"


@dataclass(frozen=True)
class Expected:
    """A graph, and for some budgets in bytes the least cost; None where nothing fits."""

    graph: ComputationGraph
    optima: dict[int, float | None]


def _graph(name: str, *nodes: tuple[float, int, tuple[int, ...]]) -> ComputationGraph:
    """Nodes as (cost, memory, dependencies)."""
    return ComputationGraph(
        tuple(
            Node(f"{name}{number}", cost, memory, dependencies=dependencies)
            for number, (cost, memory, dependencies) in enumerate(nodes)
        ),
        name=name,
    )


DIAMOND = _graph("diamond", (1, 4, ()), (2, 1, (0,)), (3, 1, (0,)), (1, 1, (1, 2)))
"""0 is read by 1 and 2, which 3 reads."""

SKIP = _graph("skip", (1, 3, ()), (1, 3, (0,)), (1, 3, (1,)), (1, 1, (2,)), (1, 1, (0, 3)))
"""0 is read again at the end; it is cheaper to compute it twice than to keep it."""

U_SHAPE = _graph(
    "u-shape",
    (1, 4, ()),
    (1, 2, (0,)),
    (1, 4, (1,)),
    (1, 2, (2,)),
    (1, 2, (1, 3)),
    (1, 1, (0, 4)),
)
"""Two nested skips, as in a U-Net."""

MULTI_OUTPUT = _graph("multi-output", (2, 2, ()), (1, 2, (0,)), (1, 2, (1,)), (1, 1, (0,)))
"""2 and 3 are read by nobody."""

NAMED = {
    "chain": Expected(unit_chain(8), {10: 17, 6: 21, 5: 22, 4: 26, 2: None}),
    "diamond": Expected(DIAMOND, {6: 7, 5: None}),
    "skip": Expected(SKIP, {9: 5, 7: 6, 6: 6, 5: None}),
    "u-shape": Expected(U_SHAPE, {12: 6, 8: 7, 7: None}),
    "multi-output": Expected(MULTI_OUTPUT, {6: 5, 4: 7, 3: None}),
}


def small_unet() -> ComputationGraph:
    """A U-Net of four scales and 59 nodes; see `SMALL_UNET_OPTIMA`."""
    layers: list[Layer] = []

    def add(name: str, cost: int, elements: int, *inputs: int) -> int:
        layers.append(Layer(name, cost, elements, parameters=cost // 100, inputs=inputs))
        return len(layers) - 1

    scales = [(64 >> depth, 8 << depth) for depth in range(4)]  # side, channels
    x = add("input", 100, 64 * 64 * 8)
    skips = []
    for side, channels in scales:
        for part in "ab":
            x = add(f"down{side}{part}", (side * channels) ** 2 // 64, side**2 * channels, x)
        skips.append(x)
        x = add(f"pool{side}", 0, (side // 2) ** 2 * channels, x)
    for side, channels in reversed(scales):
        x = add(f"larger{side}", 0, side**2 * channels * 2, x)
        x = add(f"skip{side}", 0, side**2 * channels * 3, x, skips.pop())
        for part in "ab":
            x = add(f"up{side}{part}", (side * channels) ** 2 // 64, side**2 * channels, x)
    return layer_graph("small U-Net", layers)


SMALL_UNET_OPTIMA = {0.8: 196_908, 0.6: 209_296}
"""Least cost by share of the input-order peak, in this order, as the MILP of the paper proves."""


def shared_graph(name: str) -> ComputationGraph:
    """A network of the literature; the test is skipped where its file is absent."""
    path = _SHARED / f"{name}.json"
    if not path.exists():
        pytest.skip(f"{path.name} is not there; it is not part of this project")
    return ComputationGraph.load(path)


@st.composite
def random_graphs(draw: st.DrawFn, most: int = 7, special: bool = True) -> ComputationGraph:
    """Small DAGs; with `special`, also workspaces, stateful and expiring nodes."""
    count = draw(st.integers(2, most))
    nodes = []
    for number in range(count):
        earlier = st.lists(st.integers(0, number - 1), unique=True, max_size=3)
        dependencies = draw(earlier) if number else []
        node = Node(
            f"n{number}",
            cost=draw(st.integers(0, 5)),
            memory=draw(st.integers(0, 6)),
            workspace=draw(st.integers(0, 3)) if special else 0,
            backward=number > count // 2,
            recomputable=draw(st.integers(0, 5)) > 0 if special else True,
            dependencies=tuple(sorted(dependencies)),
            expired_by=(draw(st.integers(number + 1, count - 1)),)
            if special and number < count - 1 and draw(st.integers(0, 5)) == 0
            else (),
        )
        nodes.append(node)
    return ComputationGraph(tuple(nodes), name="random")
