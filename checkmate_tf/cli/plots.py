"""Pictures: overhead against budget, what operations cost, and memory over a step."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path

from matplotlib import color_sequences
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator, ScalarFormatter

from checkmate_tf.graph.operation_costs import OperationCost
from checkmate_tf.picture_files import as_text, write_picture
from solvers.comparison import Row

_HUES = [to_hex(each) for name in ("tab10", "Dark2") for each in color_sequences[name]]
_STYLES = tuple(zip(_HUES, "osv^D<>PpXDosv^<hd", strict=True))
"""Colour and marker of a line; no two pairs are equal."""

_LARGEST = 11.0
"""Points of the first line's markers."""

_MEBIBYTE = 2**20
_COLOURS = ("tab:gray", "tab:blue", "tab:green", "tab:purple")


def line_styles(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """A colour and a marker for each name, in the order in which names come first.

    Example:
        >>> line_styles(["auto", "milp", "auto"])
        {'auto': ('#1f77b4', 'o'), 'milp': ('#ff7f0e', 's')}
    """
    return dict(zip(dict.fromkeys(names), cycle(_STYLES), strict=False))


def plot_comparison(rows: Sequence[Row], path: str | Path) -> None:
    """Overhead against budget, a panel for each graph and a line for each solver.

    A solver has the same colour and marker in all panels. Those that are never best are grey;
    solvers whose results are the same everywhere share a line and its label.

    Args:
        path: its suffix says the format: .png, .pdf, .svg.
    """
    graphs = list(dict.fromkeys(row.graph for row in rows))
    figure = Figure(figsize=(9, 4 * len(graphs)), layout="constrained")
    panels = figure.subplots(len(graphs), 1, squeeze=False)[:, 0]
    styles = line_styles(row.solver for row in rows)
    for graph, axes in zip(graphs, panels, strict=True):
        _draw(axes, graph, [row for row in rows if row.graph == graph], styles)
    write_picture(figure, path)


def _draw(
    axes: Axes, graph: str, rows: Sequence[Row], styles: Mapping[str, tuple[str, str]]
) -> None:
    curves = _curves(rows)
    # The last one of a share, the least overhead, stays.
    least = dict(sorted((point for points in curves for point in points), reverse=True))
    size = _LARGEST
    for points, solvers in curves.items():
        colour, marker = styles[solvers[0]]
        is_best = any(math.isclose(over, least[share], abs_tol=1e-9) for share, over in points)
        axes.plot(
            *zip(*points, strict=True),
            marker=marker,
            markersize=size if is_best else 5,
            color=colour if is_best else "0.7",
            linewidth=1.8 if is_best else 0.8,
            zorder=3 if is_best else 2,
            label=as_text("\n".join(solvers)),
        )
        # Where lines lie on each other, the next one's marker is inside the one before it.
        size = max(4.0, size - 2) if is_best else size
    _draw_bound(axes, rows)
    # Overheads of a thousandth and of a hundred times both matter.
    axes.set_yscale("symlog", linthresh=1)
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.set_ylim(bottom=0)
    axes.set_title(as_text(graph))
    axes.set_xlabel("budget, % of the peak of one pass")
    axes.set_ylabel("overhead, % of one pass")
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))


def _curves(rows: Sequence[Row]) -> dict[tuple[tuple[float, float], ...], list[str]]:
    """The solvers of every curve of (budget in %, overhead in %), in the order of the rows."""
    points: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        if row.overhead is not None:
            # What a picture can't tell apart is one curve.
            points[row.solver].append((round(100 * row.budget_share, 6), round(row.overhead, 4)))
    curves: dict[tuple[tuple[float, float], ...], list[str]] = defaultdict(list)
    for solver, of_solver in points.items():
        curves[tuple(sorted(of_solver))].append(solver)
    return curves


def _draw_bound(axes: Axes, rows: Sequence[Row]) -> None:
    """The highest lower bound at every budget, and the area under it."""
    bounds = {
        100 * row.budget_share: max(0.0, row.bound_overhead)
        for row in sorted(rows, key=lambda row: (row.budget_share, row.bound_overhead or 0.0))
        # Bounds for one order of the nodes do not hold for another.
        if row.bound_overhead is not None and row.bound_order in ("free", row.order)
    }
    if bounds:
        shares, lowest = [*bounds], [*bounds.values()]
        axes.fill_between(shares, 0, lowest, color="0.9", label="below the lower bound", zorder=0)
        axes.plot(shares, lowest, color="0.4", linestyle="--", marker="_", zorder=1)


def plot_operations(
    rows: Sequence[OperationCost], path: str | Path, title: str, unit: str = "s", shown: int = 20
) -> None:
    """Bars of cost and memory of the costliest operations, one below the other.

    Args:
        rows: the costliest first.
        path: its suffix says the format: .png, .pdf, .svg.
        title: what was measured, and on which device.
        unit: of the costs.
        shown: how many operations at most.
    """
    top = rows[:shown]
    total = sum(row.total for row in rows) or 1.0
    places = range(len(top))
    figure = Figure(figsize=(11, 1.6 + 0.32 * len(top)), layout="constrained")
    figure.suptitle(as_text(title))
    costs, memories = figure.subplots(1, 2, sharey=True)
    bars = costs.barh(places, [row.total for row in top], color="tab:blue")
    costs.bar_label(bars, [f"{100 * row.total / total:.1f} %" for row in top], padding=2, size=8)
    costs.margins(x=0.15)
    costs.xaxis.set_major_formatter(EngFormatter(unit=unit))
    costs.set_xlabel("cost of all runs, and its share of the step's")
    costs.set_yticks(places, [as_text(_label(row)) for row in top], size=8)
    costs.invert_yaxis()
    outputs = [row.memory for row in top]
    memories.barh(places, outputs, color="tab:orange", label="outputs")
    workspaces = [row.workspace or 0 for row in top]
    memories.barh(places, workspaces, left=outputs, color="tab:red", label="workspace")
    memories.xaxis.set_major_formatter(EngFormatter(unit="B"))
    memories.set_xlabel("memory of one run")
    memories.legend(fontsize="small")
    for axes in (costs, memories):
        axes.grid(axis="x", alpha=0.3)
        axes.xaxis.set_major_locator(MaxNLocator(5))
    write_picture(figure, path)


def _label(row: OperationCost) -> str:
    runs = f"{row.runs} × " if row.runs > 1 else ""
    name = row.name if len(row.name) <= 40 else f"…{row.name[-39:]}"
    return f"{runs}{name} {row.output}".rstrip()


def draw_timelines(
    path: str | Path,
    timelines: Mapping[str, Sequence[int]],
    measured: Mapping[str, int],
    budget: int,
    title: str,
) -> None:
    """Draw predicted memory during a step, one curve a schedule.

    Args:
        path: its suffix says the format: .png, .pdf, .svg.
        timelines: per schedule, bytes held during each of its steps.
        measured: per step that was run, the peak in bytes that its allocator reported; in the
            order of `timelines`.
        budget: bytes that were asked for.
        title: above the picture.
    """
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots()
    for (name, timeline), colour in zip(timelines.items(), _COLOURS, strict=False):
        # Schedules differ in length: each runs from the start of the step to its end.
        share = [100 * place / max(1, len(timeline) - 1) for place in range(len(timeline))]
        held = [size / _MEBIBYTE for size in timeline]
        axes.fill_between(share, held, alpha=0.15, color=colour, step="mid")
        axes.step(share, held, where="mid", color=colour, label=f"{name} (predicted)")
    for (name, peak), colour in zip(measured.items(), _COLOURS, strict=False):
        size = peak / _MEBIBYTE
        axes.axhline(size, color=colour, linestyle=":", label=f"{name}: measured peak {size:.0f}")
    size = budget / _MEBIBYTE
    axes.axhline(size, color="tab:red", linewidth=2, label=f"budget {size:.0f}")
    axes.set(title=title, xlabel="place in the step, %", ylabel="memory held, MiB", xlim=(0, 100))
    axes.set_ylim(bottom=0)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    write_picture(figure, path)
