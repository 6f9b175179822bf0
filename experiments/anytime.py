"""Anytime curves: what a solver had found, and proved, after so many seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from solvers import ComputationGraph, Progress, Solution


@dataclass(frozen=True)
class Point:
    """A solver's state at a moment; overheads in % of one pass."""

    seconds: float
    overhead: float
    bound: float

    @property
    def gap(self) -> float:
        """Points of overhead between what is found and what is proved."""
        return max(0.0, self.overhead - self.bound)


def curve(graph: ComputationGraph, told: Sequence[Progress], end: Solution) -> list[Point]:
    """The points from the first schedule to the answer; empty where none was found.

    Example:
        >>> from solvers import solve
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> told: list[Progress] = []
        >>> answer = solve(unit_chain(8), 6, "milp", on_progress=told.append)
        >>> curve(unit_chain(8), told, answer)[-1].gap
        0.0
    """
    states = [(each.seconds, each.cost, each.bound) for each in told]
    states.append((end.seconds, end.cost, end.bound))
    one_pass = graph.one_pass_cost
    return [
        Point(seconds, 100 * (cost / one_pass - 1), 100 * ((bound or one_pass) / one_pass - 1))
        for seconds, cost, bound in states
        if cost is not None
    ]


def plot_curves(curves: Mapping[str, Mapping[str, Sequence[Point]]], path: str | Path) -> None:
    """Gap against time: a panel for each problem, a line for each solver.

    Args:
        curves: problem → solver → points.
        path: its suffix says the format: .png, .pdf, .svg.
    """
    from matplotlib.figure import Figure

    rows = max(1, -(-len(curves) // 3))
    figure = Figure(figsize=(12, 2.6 * rows), layout="constrained")
    panels = figure.subplots(rows, 3, squeeze=False).ravel()
    for (problem, solvers), axes in zip(curves.items(), panels, strict=False):
        for solver, points in solvers.items():
            seconds = [point.seconds for point in points]
            axes.step(seconds, [point.gap for point in points], where="post", label=solver)
        axes.set_title(problem, fontsize="small")
        axes.set_xscale("symlog", linthresh=1)
        axes.set_yscale("symlog", linthresh=0.1)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("seconds", fontsize="small")
        axes.set_ylabel("gap, points", fontsize="small")
        axes.grid(alpha=0.3)
        if any(solvers.values()):
            axes.legend(fontsize="x-small")
    for axes in panels[len(curves) :]:
        axes.set_visible(False)
    figure.savefig(path)
