"""What `memory` found, and how a person reads it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from checkmate_tf.breakdown.parts import Timeline
from checkmate_tf.drawing import needs_matplotlib
from checkmate_tf.plans.table import shortened
from solvers import format_bytes

if TYPE_CHECKING:
    from checkmate_tf.picture_files import Picture

_SHOWN = 12
"""Layers of the table; what is left is one row more."""


@dataclass(frozen=True)
class Fit:
    """The largest batches of a step that a device holds.

    Attributes:
        device_memory: bytes of the device.
        usable: bytes of them that TensorFlow can use.
        unchanged: the largest batch of the step as it is; 0 if not even one fits.
        planned: the largest by a plan, within the extra time that is allowed; at least `unchanged`.
        overhead: predicted extra time of that plan, as a share of a step.
    """

    device_memory: int
    usable: int
    unchanged: int
    planned: int
    overhead: float


@dataclass(frozen=True)
class StepMemory:
    """What a step of a batch holds as it is, and the largest batches that devices hold.

    Attributes:
        name: of the step, and of its model.
        batch_size: examples in a batch.
        device: that it is told for, in words.
        peak: bytes that the device's allocator holds at most, all in all.
        how: the peak is known: "forecast", or "compiled" by XLA.
        parts: bytes by kind at the moment of the peak; they add up to it. The last one is what the
            allocator wastes, or below 0 what is written in place of others, or what XLA saves.
        layers: bytes of activations that each layer keeps for the backward pass, in their order.
        fits: a row for every device that was asked for.
        timeline: by kind, what is held while the step runs.
        notes: what else the user should know.
    """

    name: str
    batch_size: int
    device: str
    peak: int
    how: str
    parts: dict[str, int]
    layers: dict[str, int]
    fits: tuple[Fit, ...]
    timeline: Timeline
    notes: tuple[str, ...] = ()

    def plot(self, path: str | Path | None = None) -> Picture:
        """Draw what is held while the step runs, by kind, and the layers that keep most.

        Args:
            path: of a file to write it to, whole or not at all; its suffix says the format: .png,
                .pdf, .svg.

        Returns:
            a `matplotlib.figure.Figure`, which a notebook shows.

        Raises:
            CheckmateError: matplotlib is not installed, or the file can't be written.
        """
        with needs_matplotlib("a step's memory"):
            from checkmate_tf.breakdown.picture import draw
            from checkmate_tf.picture_files import write_picture
        figure = draw(self.name, self.batch_size, self.timeline, self.layers, self.peak, self.fits)
        if path is not None:
            write_picture(figure, path)
        return figure

    def __repr__(self) -> str:
        """Short; `print` tells more."""
        return f"<StepMemory of {self.name!r}, batch {self.batch_size}: {format_bytes(self.peak)}>"

    def __str__(self) -> str:
        parts = [*self._parts(), "", *self._layers()]
        fits = ["", *_table_of(self.fits)] if self.fits else []
        notes = [fill(f"note: {each}", 79) for each in self.notes]
        title = fill(f"{self.name}, batch {self.batch_size}, on {self.device}", 79)
        return "\n".join([title, "", *parts, *fits, *notes])

    def _parts(self) -> list[str]:
        rows = [(f"  {name}", size) for name, size in self.parts.items() if size]
        return [
            f"{name:<44}{format_bytes(size):>14}{_share(size, self.peak):>8}"
            for name, size in [(f"peak ({self.how})", self.peak), *rows]
        ]

    def _layers(self) -> list[str]:
        total = sum(self.layers.values())
        largest = sorted(self.layers, key=lambda name: -self.layers[name])[:_SHOWN]
        rows = [(name, size) for name, size in self.layers.items() if name in largest]
        rest = total - sum(size for _, size in rows)
        others = len(self.layers) - len(rows)
        if others:
            rows.append((f"{others} smaller ones", rest))
        return [
            f"{shortened(name, 43):<44}{format_bytes(size):>14}{_share(size, total):>8}"
            for name, size in [("activations kept for the backward pass", total), *rows]
        ]


def _table_of(fits: tuple[Fit, ...]) -> list[str]:
    rows = [("device", "for TensorFlow", "unchanged", "by plan", "extra time")]
    rows += [
        (
            format_bytes(each.device_memory),
            format_bytes(each.usable),
            str(each.unchanged or "none"),
            str(each.planned or "none"),
            f"{100 * each.overhead:.0f} %" if each.planned > each.unchanged else "",
        )
        for each in fits
    ]
    return ["largest batch", *("{:<12}{:>16}{:>12}{:>12}{:>14}".format(*each) for each in rows)]


def _share(size: int, total: int) -> str:
    return f"{100 * size / total:.1f} %" if total else ""
