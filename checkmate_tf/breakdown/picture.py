"""What a step holds while it runs, by kind, and the layers that keep most, as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes

from checkmate_tf.breakdown.parts import Timeline
from checkmate_tf.picture_files import Picture, as_text
from checkmate_tf.plans.table import shortened
from solvers import format_bytes

if TYPE_CHECKING:
    from checkmate_tf.breakdown.result import Fit

_MEBIBYTE = 2**20
_SHOWN = 15
_COLOURS = {
    "weights": "0.55",
    "optimizer": "0.7",
    "metrics": "0.8",
    "inputs": "tab:green",
    "constants and small values": "0.88",
    "activations": "tab:blue",
    "gradients": "tab:orange",
    "kernels' workspaces": "tab:red",
}


def draw(
    name: str,
    batch_size: int,
    timeline: Timeline,
    layers: Mapping[str, int],
    peak: int,
    fits: Sequence[Fit],
) -> Picture:
    """Draw the memory of a step; the arguments are those of `StepMemory`."""
    figure = Picture(figsize=(10, 10 if fits else 7.5), layout="constrained")
    figure.suptitle(as_text(f"{name}, batch {batch_size}: {format_bytes(peak)}"))
    memory, by_layer, *rest = figure.subplots(3 if fits else 2, 1)
    _draw_timeline(memory, timeline, peak)
    _draw_layers(by_layer, layers)
    for axes in rest:
        _draw_fits(axes, fits)
    return figure


def _draw_timeline(axes: Axes, timeline: Timeline, peak: int) -> None:
    steps = len(timeline.total)
    fixed = {kind: [size] * steps for kind, size in timeline.fixed.items() if size}
    curves = {**fixed, **{kind: each.tolist() for kind, each in timeline.varying.items()}}
    axes.stackplot(
        range(steps),
        [[size / _MEBIBYTE for size in curve] for curve in curves.values()],
        labels=list(curves),
        colors=[_COLOURS[kind] for kind in curves],
        step="mid",
    )
    axes.axhline(peak / _MEBIBYTE, color="black", linestyle=":", label="peak of the allocator")
    axes.set(xlabel="operation of the step, in order", ylabel="memory held, MiB")
    axes.set_xlim(0, max(1, steps - 1))
    axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1, 0.5), reverse=True)


def _draw_layers(axes: Axes, layers: Mapping[str, int]) -> None:
    largest = sorted(layers, key=lambda name: -layers[name])[:_SHOWN]
    shown = [name for name in layers if name in largest]
    names = [as_text(shortened(name, 32)) for name in shown]
    axes.barh(range(len(shown)), [layers[name] / _MEBIBYTE for name in shown], color="tab:blue")
    axes.set_yticks(range(len(shown)), names, fontsize="x-small")
    axes.invert_yaxis()
    axes.set_xlabel(f"kept for the backward pass, MiB: the largest of {len(layers)} layers")


def _draw_fits(axes: Axes, fits: Sequence[Fit]) -> None:
    for side, label, colour in ((-0.2, "unchanged", "0.6"), (0.2, "by plan", "tab:orange")):
        sizes = [each.unchanged if side < 0 else each.planned for each in fits]
        places = [place + side for place in range(len(fits))]
        axes.bar_label(axes.bar(places, sizes, 0.4, color=colour, label=label), fontsize="small")
    axes.set_xticks(range(len(fits)), [format_bytes(each.device_memory) for each in fits])
    axes.set_ylabel("largest batch")
    axes.margins(y=0.15)
    axes.legend(fontsize="small", loc="upper left")
