"""The pictures: every axis with its unit, legends beside the curves, legible in black and white."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from experiments.paper.published import FIG5_SPEEDUPS
from experiments.paper.settings import GPU_BYTES
from experiments.paper.strategies import TITLES
from experiments.paper.sweep import Sweep

_STYLES: dict[str, dict[str, Any]] = {
    "checkpoint_all": {"color": "black", "marker": "X"},
    "ap_sqrt": {"color": "tab:blue", "marker": "s"},
    "ap_greedy": {"color": "tab:cyan", "marker": "D"},
    "linearized_sqrt": {"color": "tab:orange", "marker": "v"},
    "linearized_greedy": {"color": "tab:red", "marker": "^"},
    "griewank": {"color": "tab:purple", "marker": "P"},
    "feng_huang": {"color": "tab:olive", "marker": "p"},
    "checkpoint_last": {"color": "tab:brown", "marker": "*"},
}

_MOST_DRAWN = 110
"""Percent; what costs more is far from every curve of interest."""


def panels_of(count: int, columns: int, size: tuple[float, float]) -> tuple[Figure, list[Any]]:
    """A figure of `count` panels of so many inches, and the panels; wide enough for a legend."""
    columns = min(columns, count)
    lines = -(-count // columns)
    width, height = size
    figure = Figure(figsize=(max(9, width * columns), height * lines), layout="constrained")
    panels = list(figure.subplots(lines, columns, squeeze=False).flat)
    for axes in panels[count:]:
        axes.set_visible(False)
    return figure, panels[:count]


def overheads(path: Path, swept: Sequence[Sweep]) -> None:
    """Figure 5: a panel for every graph."""
    figure, panels = panels_of(len(swept), columns=3, size=(5.2, 4.8))
    named: dict[str, Any] = {}
    for axes, each in zip(panels, swept, strict=True):
        _overhead_panel(axes, each)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=5, fontsize=11)
    figure.savefig(path, dpi=110)


def _overhead_panel(axes: Any, swept: Sweep) -> None:
    graph = swept.graph
    one_pass = graph.one_pass_cost

    def percent(cost: float | None) -> float:
        return float("nan") if cost is None else 100 * (cost / one_pass - 1)

    gigabytes = [each / 1e9 for each in swept.budgets]
    for rule, plans in swept.rules.items():
        drawn = _frontier(plans)
        x = [(graph.fixed_bytes + plan["matrices"]) / 1e9 for plan in drawn]
        y = [percent(plan["cost"]) for plan in drawn]
        x, y = [*x, max(x[-1], gigabytes[-1])], [*y, y[-1]]  # more memory does no harm
        axes.plot(
            x,
            y,
            markevery=range(len(drawn)),
            label=TITLES[rule],
            linestyle=":",
            drawstyle="steps-post",
            **_STYLES[rule],
        )
    answers = swept.solved.get("rounding", swept.solved.get("rounding as published", []))
    axes.plot(
        gigabytes[: len(answers)],
        [percent(each["cost"]) for each in answers],
        label=TITLES["rounding"], color="tab:green", marker="o", linestyle="--",
        fillstyle="none",
    )  # fmt: skip
    best = [percent(swept.optimum(number)) for number in range(len(gigabytes))]
    below = [percent(swept.bound(number)) for number in range(len(gigabytes))]
    axes.plot(gigabytes, best, label=TITLES["checkmate"], color="black", linewidth=2, marker=".")
    axes.fill_between(gigabytes, 0, below, label="ruled out by the bound", color="0.85")
    if graph.name.startswith("U-Net") and "authors" in graph.name and GPU_BYTES in swept.budgets:
        optimum = swept.optimum(swept.budgets.index(GPU_BYTES))
        published = [percent(optimum * each) for each in FIG5_SPEEDUPS.values() if optimum]
        axes.scatter(
            [GPU_BYTES / 1e9] * len(published), published, label="published, × our optimum",
            facecolors="none", edgecolors="black", s=160, zorder=3,
        )  # fmt: skip
    axes.set(xlabel="budget, GB", ylabel="overhead over one pass, %", title=graph.name)
    axes.set_ylim(-1, _MOST_DRAWN)
    axes.set_xlim(right=1.05 * gigabytes[-1])


def _frontier(plans: Sequence[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """The plans that are worth their memory by the matrices, ascending."""
    kept: list[Mapping[str, float]] = []
    for plan in sorted(plans, key=lambda each: (each["matrices"], each["cost"])):
        if not kept or plan["cost"] < kept[-1]["cost"]:
            kept.append(plan)
    return kept


def bars(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Figure 6: a panel for every network, three bars for every strategy."""
    networks = list(dict.fromkeys(row["network"] for row in rows))
    figure, panels = panels_of(len(networks), columns=4, size=(4, 4.8))
    shades = {"published": "white", "paper's accounting": "0.65", "counted once": "0.2"}
    for axes, network in zip(panels, networks, strict=True):
        own = [row for row in rows if row["network"] == network]
        for place, (column, shade) in enumerate(shades.items()):
            axes.bar(
                [number + 0.27 * (place - 1) for number in range(len(own))],
                [row[column] or 0 for row in own],
                width=0.27, label=column, color=shade, edgecolor="black",
            )  # fmt: skip
        axes.set_xticks(range(len(own)), [row["strategy"] for row in own], rotation=60, ha="right")
        axes.set(title=network, ylabel="largest batch, images")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=12)
    figure.savefig(path, dpi=100)


def matrices_in_black(path: Path, pictures: Mapping[str, Any]) -> None:
    """Figure 7: black where a stage computes a node."""
    figure, panels = panels_of(len(pictures), columns=4, size=(3.6, 4))
    for axes, (title, matrix) in zip(panels, pictures.items(), strict=True):
        axes.imshow(matrix, cmap="binary", interpolation="nearest")
        axes.set_title(title, fontsize=12)
        axes.set(xlabel="node computed", ylabel="stage")
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    figure.savefig(path, dpi=110)


def roundings(path: Path, pairs: Sequence[tuple[Any, Any, Any]]) -> None:
    """Figure 8: cost against peak, of both ways to round."""
    figure, panels = panels_of(len(pairs), columns=3, size=(5, 4.4))
    for axes, (graph, answer, best) in zip(panels, pairs, strict=True):
        one_pass = graph.one_pass_cost
        drawn = answer["randomized"]
        axes.scatter(
            [each["peak"] / 1e9 for each in drawn], [each["cost"] / one_pass for each in drawn],
            label="randomized", marker="x", color="0.45",
        )  # fmt: skip
        fixed = answer["deterministic"]
        axes.scatter(
            [fixed["peak"] / 1e9], [fixed["cost"] / one_pass],
            label="deterministic", marker="o", color="tab:blue", s=80,
        )  # fmt: skip
        if best["cost"] is not None:
            axes.scatter(
                [best["peak"] / 1e9], [best["cost"] / one_pass],
                label="optimum", marker="*", color="black", s=140,
            )  # fmt: skip
        axes.axvline(GPU_BYTES / 1e9, color="black", linestyle="--", label="16 GB")
        axes.set(xlabel="peak, GB", ylabel="cost, × one pass", title=graph.name)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=12)
    figure.savefig(path, dpi=110)


_NODES = (10, 20, 50, 100, 200, 500, 1000)
"""What an axis of nodes is marked with."""

_MARKERS = "os^Dv*PX"
_DASHES = ("-", "--", "-.", ":")


def _lines(axes: Any, rows: Sequence[Mapping[str, Any]], name: str, x: str, y: str) -> None:
    """A line for every value of the column `name`, each with a marker and dashes of its own."""
    for number, line in enumerate(dict.fromkeys(row[name] for row in rows)):
        own = [row for row in rows if row[name] == line and row[y] is not None]
        axes.plot(
            [row[x] for row in own], [row[y] for row in own], label=line,
            marker=_MARKERS[number % len(_MARKERS)], linestyle=_DASHES[number % len(_DASHES)],
            fillstyle="none", markersize=6 + 1.5 * number,  # those of equal answers are all seen
        )  # fmt: skip


def times(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Seconds of every form against the number of layers."""
    figure, (axes,) = panels_of(1, columns=1, size=(9, 5))
    _lines(axes, rows, "form", "layers", "seconds")
    axes.set(xscale="log", yscale="log", xlabel="layers of a random chain", ylabel="time, s")
    axes.grid(color="0.85")
    figure.legend(loc="outside right upper", fontsize=12)
    figure.savefig(path, dpi=110)


def proofs(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Seconds to a proof and the gap that is left, against nodes; a line of panels a family."""
    families = list(dict.fromkeys(row["family"] for row in rows))
    figure, panels = panels_of(2 * len(families), columns=2, size=(5, 4))
    for number, family in enumerate(families):
        seconds, gaps = panels[2 * number : 2 * number + 2]
        own = [row for row in rows if row["family"] == family]
        nodes = [row["nodes"] for row in own]
        proved = [{**row, "s": row["seconds"] if row["proved"] == "yes" else None} for row in own]
        _lines(seconds, proved, "solver", "nodes", "s")
        _lines(gaps, own, "solver", "nodes", "gap, %")
        seconds.set(yscale="log", ylabel="time to the proof, s", title=f"{family}: proved")
        gaps.set_yscale("symlog", linthresh=0.01)
        gaps.set(ylabel="gap at the end, %", title=f"{family}: found")
        for axes in (seconds, gaps):
            axes.set(xscale="log", xlabel="nodes")
            axes.set_xticks(_NODES, [str(each) for each in _NODES])
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_xlim(0.9 * min(nodes), 1.1 * max(nodes))
            axes.grid(color="0.85")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=11)
    figure.savefig(path, dpi=110)
