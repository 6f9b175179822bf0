"""A plan as a picture: memory over the step by layer, and the schedule as the paper's R."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from checkmate_tf.picture_files import Picture, as_text
from checkmate_tf.plans.layers import layer_names
from checkmate_tf.plans.table import shortened
from solvers import ComputationGraph, Schedule, simulate
from solvers.graph.lifetimes import held_by_group

_MEBIBYTE = 2**20
_SHOWN = 9
"""Layers with a colour of their own: those that hold most at some step."""

_MATRIX_POINTS = 280
"""Height of the matrix, about, which its marks share."""


def draw_plan(
    graph: ComputationGraph, schedule: Schedule, budget: int, peaks: Mapping[str, int]
) -> Picture:
    """Draw memory over the step, layer upon layer, and below it which stage computes which node.

    Args:
        graph: of the schedule.
        schedule: that of the plan.
        budget: bytes that were asked for.
        peaks: bytes of the whole step, by how they are known: "measured", for one.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> figure = draw_plan(unit_chain(2), Schedule(range(5)), 6, {"measured": 5})
        >>> [axes.get_ylabel() for axes in figure.axes]
        ['memory held, MiB', 'stage']
    """
    figure = Picture(figsize=(10, 9), layout="constrained")
    memory, matrix = figure.subplots(2, 1)
    figure.suptitle(f"{graph.name}: {len(schedule)} steps of {len(graph)} nodes")
    _draw_memory(memory, graph, schedule, budget, peaks)
    _draw_matrix(matrix, graph, schedule)
    return figure


def memory_by_layer(graph: ComputationGraph, schedule: Schedule) -> dict[str, NDArray[np.int64]]:
    """Bytes that each layer holds during each step, "variables and inputs" first, workspaces last.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> held = memory_by_layer(unit_chain(2), Schedule(range(5)))
        >>> bool((sum(held.values()) == simulate(unit_chain(2), Schedule(range(5))).timeline).all())
        True
    """
    held = held_by_group(graph, schedule, layer_names(graph))
    by_size = sorted(held, key=lambda name: -int(held[name].max()))
    fixed = np.full(len(schedule), graph.fixed_bytes, np.int64)
    workspace = graph.workspaces[list(schedule.steps)]
    return {
        "variables and inputs": fixed,
        **{name: held[name] for name in by_size},
        "kernels' workspaces": workspace,
    }


def _draw_memory(
    axes: Axes,
    graph: ComputationGraph,
    schedule: Schedule,
    budget: int,
    peaks: Mapping[str, int],
) -> None:
    held = memory_by_layer(graph, schedule)
    first, *layers, last = held
    shown, rest = layers[:_SHOWN], layers[_SHOWN:]
    curves = {first: held[first], **{name: held[name] for name in shown}}
    if rest:
        curves[f"{len(rest)} more layers"] = np.sum([held[name] for name in rest], axis=0)
    curves[last] = held[last]
    # Dark and light in turn, so that neighbours differ without colour too.
    colours = matplotlib.colormaps["tab20"].colors  # type: ignore[attr-defined]
    axes.stackplot(
        range(len(schedule)),
        [curve / _MEBIBYTE for curve in curves.values()],
        labels=[as_text(shortened(name, 40)) for name in curves],
        colors=["0.8", *colours[: len(shown)], *["0.6"] * bool(rest), "0.3"],
        step="mid",
    )
    size = budget / _MEBIBYTE
    axes.axhline(size, color="tab:red", linewidth=2, linestyle="--", label=f"budget {size:.1f}")
    for how, peak in peaks.items():
        size = peak / _MEBIBYTE
        axes.axhline(size, color="black", linestyle=":", label=f"peak, {how} {size:.1f}")
    timeline = simulate(graph, schedule).timeline
    place, size = int(timeline.argmax()), int(timeline.max()) / _MEBIBYTE
    axes.plot(place, size, "kv", label=f"peak of live values {size:.1f}")
    axes.set(xlabel="step of the schedule", ylabel="memory held, MiB")
    axes.set_xlim(0, max(1, len(timeline) - 1))
    axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1, 0.5), reverse=True)


def _draw_matrix(axes: Axes, graph: ComputationGraph, schedule: Schedule) -> None:
    """R: a row for every stage, a column for every node in the order of first computations."""
    column: dict[int, int] = {}
    again: list[tuple[int, int]] = []
    for number in schedule.steps:
        if number in column:
            again.append((column[number], len(column)))
        else:
            column[number] = len(column)
    size = min(8.0, max(2.0, _MATRIX_POINTS / len(graph)))
    mark: dict[str, Any] = {"marker": "s", "linestyle": "none", "markeredgewidth": 0.0}
    stages = range(len(graph))
    axes.plot(stages, stages, **mark, color="0.7", markersize=size, label="first computation")
    if again:
        nodes, at = zip(*again, strict=True)
        label = f"recomputation, {len(again)} times"
        axes.plot(nodes, at, **mark, color="black", markersize=max(4.0, size), label=label)
    axes.set(
        xlabel="node, in the order of first computations",
        ylabel="stage",
        xlim=(-0.5, len(graph) - 0.5),
        ylim=(len(graph) - 0.5, -0.5),
    )
    legend = axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    for each in legend.get_lines():
        each.set_markersize(6)
