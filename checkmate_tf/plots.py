"""Pareto plots: what a budget costs, with the lower bound under it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from solvers.comparison import Row

_MARKERS = "osv^D<>Pp*Xhd"


def plot_comparison(rows: Sequence[Row], path: str | Path) -> None:
    """Overhead against budget, a panel for each graph and a line for each solver.

    Args:
        path: its suffix says the format: .png, .pdf, .svg.
    """
    graphs = list(dict.fromkeys(row.graph for row in rows))
    figure = Figure(figsize=(8, 4 * len(graphs)), layout="constrained")
    panels = figure.subplots(len(graphs), 1, squeeze=False)[:, 0]
    for graph, axes in zip(graphs, panels, strict=True):
        _draw(axes, graph, [row for row in rows if row.graph == graph])
    figure.savefig(path)


def _draw(axes: Axes, graph: str, rows: Sequence[Row]) -> None:
    solvers = dict.fromkeys(row.solver for row in rows)
    for solver, marker in zip(solvers, cycle(_MARKERS), strict=False):
        points = sorted(
            (100 * row.budget_share, row.overhead)
            for row in rows
            if row.solver == solver and row.overhead is not None
        )
        if points:
            axes.plot(*zip(*points, strict=True), marker=marker, label=solver)
    bounds: dict[float, float] = {}
    for row in rows:
        # Bounds for one order of the nodes do not hold for another.
        if row.bound_overhead is not None and row.bound_order == rows[0].order:
            share = 100 * row.budget_share
            bounds[share] = max(bounds.get(share, 0.0), row.bound_overhead)
    if bounds:
        shares = sorted(bounds)
        lowest = [bounds[share] for share in shares]
        axes.fill_between(shares, 0, lowest, color="0.85", label="below the lower bound", zorder=0)
        axes.plot(shares, lowest, color="0.5", linestyle="--", marker="_")
    # Overheads of a thousandth and of a hundred times both matter.
    axes.set_yscale("symlog", linthresh=1)
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.set_ylim(bottom=0)
    axes.set_title(graph)
    axes.set_xlabel("budget, % of the peak of one pass")
    axes.set_ylabel("overhead, % of one pass")
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
