"""A picture of memory over the steps of a schedule, with the budget and what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

_MEBIBYTE = 2**20
_COLOURS = ("tab:gray", "tab:blue", "tab:green", "tab:purple")


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
    figure.savefig(path, dpi=120)
