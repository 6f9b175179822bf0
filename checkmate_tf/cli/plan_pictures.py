"""A plan as a picture: memory over the step by layer, and the schedule as the paper's R."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from checkmate_tf.planning.layers import layer_names
from checkmate_tf.planning.plan import Plan
from checkmate_tf.planning.plan_table import shortened
from solvers import ComputationGraph, Schedule, simulate
from solvers.graph.lifetimes import last_reads

_MEBIBYTE = 2**20
_SHOWN = 9
"""Layers with a colour of their own: those that hold most at some step."""


def draw_plan(plan: Plan, path: str | Path) -> None:
    """Draw memory over the step, layer upon layer, and which node is computed when.

    Args:
        plan: it.
        path: its suffix says the format: .png, .pdf, .svg.
    """
    figure = Figure(figsize=(10, 9), layout="constrained")
    memory, schedule = figure.subplots(2, 1)
    figure.suptitle(f"{plan.graph.name}: {len(plan.schedule)} steps of {len(plan.graph)} nodes")
    _draw_memory(memory, plan)
    _draw_schedule(schedule, plan.graph, plan.schedule)
    figure.savefig(path, dpi=120)


def memory_by_layer(graph: ComputationGraph, schedule: Schedule) -> dict[str, NDArray[np.int64]]:
    """Bytes that each layer holds during each step, "variables and inputs" first, workspaces last.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> held = memory_by_layer(unit_chain(2), Schedule(range(5)))
        >>> bool((sum(held.values()) == simulate(unit_chain(2), Schedule(range(5))).timeline).all())
        True
    """
    steps = len(schedule)
    names, ends = layer_names(graph), last_reads(graph, schedule)
    changes: dict[str, NDArray[np.int64]] = defaultdict(lambda: np.zeros(steps + 1, np.int64))
    for begin, number in enumerate(schedule.steps):
        change = changes[names[number]]
        change[begin] += graph.nodes[number].memory
        change[ends[begin] + 1] -= graph.nodes[number].memory
    held = {name: np.cumsum(change[:-1]) for name, change in changes.items()}
    by_size = sorted(held, key=lambda name: -int(held[name].max()))
    fixed = np.full(steps, graph.fixed_bytes, np.int64)
    workspace = graph.workspaces[list(schedule.steps)]
    return {
        "variables and inputs": fixed,
        **{name: held[name] for name in by_size},
        "kernels' workspaces": workspace,
    }


def _draw_memory(axes: Axes, plan: Plan) -> None:
    held = memory_by_layer(plan.graph, plan.schedule)
    first, *layers, last = held
    shown, rest = layers[:_SHOWN], layers[_SHOWN:]
    curves = {first: held[first], **{name: held[name] for name in shown}}
    if rest:
        curves[f"{len(rest)} more layers"] = np.sum([held[name] for name in rest], axis=0)
    curves[last] = held[last]
    colours = matplotlib.colormaps["tab20"].colors  # type: ignore[attr-defined]
    axes.stackplot(
        range(len(plan.schedule)),
        [curve / _MEBIBYTE for curve in curves.values()],
        labels=[shortened(name, 40) for name in curves],
        colors=["0.8", *colours[: len(shown)], *["0.6"] * bool(rest), "0.3"],
        step="mid",
    )
    size = plan.budget / _MEBIBYTE
    axes.axhline(size, color="tab:red", linewidth=2, label=f"budget {size:.1f}")
    peak = simulate(plan.graph, plan.schedule).timeline
    axes.plot(int(peak.argmax()), int(peak.max()) / _MEBIBYTE, "kv", label="peak of live values")
    axes.set(xlabel="step of the schedule", ylabel="memory held, MiB", xlim=(0, len(peak) - 1))
    axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1, 0.5), reverse=True)


def _draw_schedule(axes: Axes, graph: ComputationGraph, schedule: Schedule) -> None:
    """A row for every stage, a column for every node in the order of first computations."""
    column: dict[int, int] = {}
    first: list[tuple[int, int]] = []
    again: list[tuple[int, int]] = []
    for number in schedule.steps:
        stage = len(column)
        if number in column:
            again.append((column[number], stage))
        else:
            column[number] = stage
            first.append((stage, stage))
    axes.plot(*zip(*first, strict=True), ",", color="tab:blue", label="first computation")
    if again:
        axes.plot(
            *zip(*again, strict=True), "s", color="tab:red", markersize=2, label="recomputation"
        )
    axes.set(
        xlabel="node, in the order of first computations",
        ylabel="stage",
        xlim=(-0.5, len(graph) - 0.5),
        ylim=(len(graph) - 0.5, -0.5),
    )
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
