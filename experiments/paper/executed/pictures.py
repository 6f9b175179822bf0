"""The pictures of what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from experiments.paper.executed.trial import OURS
from experiments.paper.pictures import panels_of

_MARKERS = {
    "plain": "X",
    "tf.recompute_grad": "s",
    "RematScope activations": "v",
    "RematScope list_of_layers": "^",
    "Grappler recomputation": "P",
    "Grappler all heuristics": "*",
    "accumulation, 2 parts": "<",
    "accumulation, 4 parts": "D",
}
"""Of the ways that are no curve."""


def frontiers(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """A panel for every network: step time against activation memory."""
    networks = list(dict.fromkeys(row["network"] for row in rows))
    figure, panels = panels_of(len(networks), columns=3, size=(4.8, 4.2))
    named: dict[str, Any] = {}
    for axes, network in zip(panels, networks, strict=True):
        own = [
            row
            for row in rows
            if row["network"] == network and row["outcome"].startswith("trained")
        ]
        for row in own:
            if row["way"] in _MARKERS:
                axes.scatter(
                    [100 * row["of plain's activation memory"]], [row["times plain"] or 1.0],
                    label=row["way"], marker=_MARKERS[row["way"]], s=70, facecolors="none",
                    edgecolors="black",
                )  # fmt: skip
        ours = sorted(
            (100 * row["of plain's activation memory"], row["times plain"])
            for row in own
            if row["way"].startswith(OURS)
        )
        axes.plot(*zip(*ours, strict=True), label=OURS, color="tab:blue", marker="o") if ours else 0
        axes.set(xlabel="activation memory, % of plain's", ylabel="step time, × plain")
        axes.set_title(network)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=4, fontsize=10)
    figure.savefig(path, dpi=110)


def cuts(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Extra time at the same cut: published, and measured here."""
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    axes = figure.subplots()
    for place, (column, label, shade) in enumerate(
        (
            ("their extra time", "published, on a GPU", "white"),
            ("extra time", "here, on a CPU", "0.4"),
        )
    ):
        axes.bar(
            [number + 0.4 * (place - 0.5) for number in range(len(rows))],
            [100 * (row[column] or 0) for row in rows],
            width=0.4, label=label, color=shade, edgecolor="black",
        )  # fmt: skip
    names = [f"{row['network']}, −{100 * row['their cut']:.0f} %" for row in rows]
    axes.set_xticks(range(len(rows)), names, rotation=60, ha="right")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(ylabel="extra time, %", xlabel="network, cut of its activation memory")
    figure.legend(loc="outside upper center", ncols=2)
    figure.savefig(path, dpi=110)


def curves(
    path: Path,
    network: str,
    recorded: Mapping[str, Sequence[Sequence[float]]],
    peaks: Mapping[str, int],
    budget: int,
) -> None:
    """Figure 1: bytes held over the time of a step."""
    figure = Figure(figsize=(9, 4.6), layout="constrained")
    axes = figure.subplots()
    styles = {"plain": ("0.55", "-"), OURS: ("tab:blue", "-")}
    titles = {"plain": "plain", OURS: "rematerialized"}
    for way, points in recorded.items():
        color, line = styles[way]
        axes.plot(
            [moment for moment, _ in points], [held / 1e6 for _, held in points],
            color=color, linestyle=line, drawstyle="steps-post",
            label=f"{titles[way]}, the allocator's peak {peaks[way] / 1e6:.0f} MB",
        )  # fmt: skip
    axes.axhline(budget / 1e6, color="black", linestyle="--", label=f"budget {budget / 1e6:.0f} MB")
    axes.set(xlabel="time in the step, s", ylabel="held, MB", title=f"{network}, one measured step")
    axes.set_ylim(bottom=0)
    figure.legend(loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=110)


def losses(
    path: Path, plain: Sequence[float], ours: Sequence[float], summary: Mapping[str, Any]
) -> None:
    """Both curves, one drawn over the other."""
    figure = Figure(figsize=(9, 4.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(plain, color="0.7", linewidth=4, label=f"plain, {summary['plain peak, MB']:.0f} MB")
    axes.plot(
        ours, color="black", linewidth=1, label=f"rematerialized, {summary['peak, MB']:.0f} MB"
    )
    axes.set(xlabel="step", ylabel="loss of the batch", title=f"{summary['network']} on digits")
    figure.legend(loc="outside lower center", ncols=2)
    figure.savefig(path, dpi=110)
