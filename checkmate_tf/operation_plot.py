"""A plot that tells where a step's time and memory go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from checkmate_tf.operation_costs import OperationCost


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
    figure.suptitle(title)
    costs, memories = figure.subplots(1, 2, sharey=True)
    bars = costs.barh(places, [row.total for row in top], color="tab:blue")
    costs.bar_label(bars, [f"{100 * row.total / total:.1f} %" for row in top], padding=2, size=8)
    costs.margins(x=0.15)
    costs.xaxis.set_major_formatter(EngFormatter(unit=unit))
    costs.set_xlabel("cost of all runs, and its share of the step's")
    costs.set_yticks(places, [_label(row) for row in top], size=8)
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
    figure.savefig(path)


def _label(row: OperationCost) -> str:
    runs = f"{row.runs} × " if row.runs > 1 else ""
    name = row.name if len(row.name) <= 40 else f"…{row.name[-39:]}"
    return f"{runs}{name} {row.output}".rstrip()
