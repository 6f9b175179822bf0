"""Anytime curves: what a solver had found, and proved, after so many seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter, SymmetricalLogLocator

from checkmate_tf.cli.plots import line_styles
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


def plot_curves(
    curves: Mapping[str, Mapping[str, Sequence[Sequence[Point]]]], path: str | Path
) -> None:
    """Gap against time: a panel for each group, a thin line for each problem.

    A solver has one colour and one marker, which stands where a line ends: at the answer.

    Args:
        curves: group → solver → the curve of each problem.
        path: its suffix says the format: .png, .pdf, .svg.
    """
    drawn = {
        group: {solver: [points for points in each if points] for solver, each in solvers.items()}
        for group, solvers in curves.items()
    }
    drawn = {group: solvers for group, solvers in drawn.items() if any(solvers.values())}
    styles = line_styles(solver for solvers in curves.values() for solver in solvers)
    rows = max(1, -(-len(drawn) // 2))
    figure = Figure(figsize=(10, 4 * rows), layout="constrained")
    panels = figure.subplots(rows, min(2, max(1, len(drawn))), squeeze=False).ravel()
    for (group, solvers), axes in zip(drawn.items(), panels, strict=False):
        _draw(axes, group, solvers, styles)
    for axes in panels[len(drawn) :]:
        axes.set_axis_off()
    figure.savefig(path)


def _draw(
    axes: Axes,
    group: str,
    solvers: Mapping[str, Sequence[Sequence[Point]]],
    styles: Mapping[str, tuple[str, str]],
) -> None:
    seconds = [point.seconds for each in solvers.values() for points in each for point in points]
    gaps = [point.gap for each in solvers.values() for points in each for point in points]
    for solver, each in solvers.items():
        colour, marker = styles[solver]
        for points in each:
            places = [point.seconds for point in points], [point.gap for point in points]
            axes.step(*places, where="post", color=colour, linewidth=0.8, alpha=0.6)
        ends = [points[-1] for points in each]
        proved = sum(end.gap == 0 for end in ends)
        axes.plot(
            [end.seconds for end in ends],
            [end.gap for end in ends],
            marker,
            color=colour,
            markersize=6,
            alpha=0.8,
            clip_on=False,
            label=f"{solver}: {proved} of {len(ends)} without a gap",
        )
    problems = max(map(len, solvers.values()))
    axes.set_title(f"{group}: {problems} problem{'s' * (problems > 1)}")
    axes.set_xscale("log")
    axes.set_xlim(min(seconds) / 1.3, max(seconds) * 1.3)
    # Gaps of a hundredth and of a hundred points both matter, and none at all above all.
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_ylim(0, 1.5 * max(0.1, *gaps))
    axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=0.1))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("seconds")
    axes.set_ylabel("gap to the bound, % of one pass")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
