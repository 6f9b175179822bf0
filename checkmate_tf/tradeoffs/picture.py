"""Extra time against the budget, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from checkmate_tf.picture_files import Picture, as_text, write_picture
from checkmate_tf.tradeoffs.point import Point

_MEBIBYTE = 2**20
_COLOUR = "tab:blue"
_MARGIN = 0.06
"""Share of the range of budgets that is left free beside the points."""


def draw(
    points: Sequence[Point], impossible: int | None, path: str | Path | None = None
) -> Picture:
    """The points as stairs: a plan serves all budgets from its own to the next larger one.

    Args:
        points: with ever smaller budgets.
        impossible: no schedule exists below so many bytes; None where none are known.
        path: where the picture goes, if anywhere; its suffix says the format.

    Raises:
        CheckmateError: it can't be written.
    """
    plain = points[0].plain_peak / _MEBIBYTE
    figure = Picture(figsize=(8, 4.8), layout="constrained")
    axes = figure.subplots()
    _draw_points(axes, points)
    _draw_limits(axes, points, (impossible or 0) / _MEBIBYTE)
    highest = 100 * max(point.overhead for point in points) or 1.0
    axes.set_ylim(-0.05 * highest, 1.15 * highest)
    axes.set(xlabel="budget, MiB", ylabel=f"extra {points[0].plan.cost_name}, %")

    def share_of(size: Any) -> Any:
        return 100 * size / plain

    def size_of(share: Any) -> Any:
        return share * plain / 100

    shares = axes.secondary_xaxis("top", functions=(share_of, size_of))
    shares.set_xlabel("% of the plain peak")
    axes.set_title(as_text(points[0].plan.graph.name))
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", loc="upper right")
    if path is not None:
        write_picture(figure, path)
    return figure


def _draw_points(axes: Axes, points: Sequence[Point]) -> None:
    sizes = [point.budget / _MEBIBYTE for point in points]
    extra = [100 * point.overhead for point in points]
    axes.step(sizes[::-1], extra[::-1], where="post", color=_COLOUR, linewidth=1.5)
    for label, how, face in (
        ("plan, compiled", "compiled", _COLOUR),
        ("plan, run for trial", "measured", _COLOUR),
        ("plan, forecast", "planned", "white"),
    ):
        chosen = [number for number, point in enumerate(points) if point.how == how]
        places = [sizes[number] for number in chosen], [extra[number] for number in chosen]
        if chosen:
            axes.plot(*places, "o", color=_COLOUR, markerfacecolor=face, label=label)
    proved = [
        (size, 100 * point.least_overhead)
        for size, point in zip(sizes, points, strict=True)
        if point.least_overhead is not None
    ]
    if proved:
        label = "proved: at least so much"
        axes.plot(*zip(*proved, strict=True), "_", color="0.3", markersize=11, label=label)
    for number, place in enumerate(zip(sizes, extra, strict=True)):
        axes.annotate(str(number), place, (4, 5), textcoords="offset points", fontsize="small")


def _draw_limits(axes: Axes, points: Sequence[Point], impossible: float) -> None:
    """Where the plain step stands, and below how many MiB no schedule exists; 0 for nowhere."""
    plain, most, least = (
        size / _MEBIBYTE for size in (points[0].plain_peak, points[0].budget, points[-1].budget)
    )
    margin = _MARGIN * (most - least or plain)
    axes.axvline(plain, color="0.5", linestyle=":", label="peak of the plain step")
    if impossible > max(0, least - 2 * margin):
        margin = max(margin, 1.5 * (least - impossible))
        axes.axvspan(least - 2 * margin, impossible, color="0.9", label="no schedule exists")
    axes.set_xlim(least - margin, max(most, plain) + margin)
