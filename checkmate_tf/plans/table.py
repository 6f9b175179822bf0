"""A plan as text of 80 columns, and as HTML, which notebooks show: by layers, and its peak."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from checkmate_tf.plans.layers import Layer, layers_of, peak_of
from solvers import ComputationGraph, Schedule, format_bytes

if TYPE_CHECKING:
    from checkmate_tf.picture_files import Picture

_SHOWN = 10
"""Rows of each table; what is left is one row more."""

_ROW = "{:<35.35}{:>14}{:>14}{:>14}"
_NAME = 34


def by_layers(graph: ComputationGraph, schedule: Schedule) -> list[str]:
    """Lines that say what each layer keeps and recomputes, and who holds the peak.

    Example:
        >>> from solvers import Schedule
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> for line in by_layers(unit_chain(2), Schedule([0, 1, 2, 0, 3, 4]))[:2]:
        ...     print(" ".join(line.split()))
        layer, largest first kept recomputed extra cost
        v0 0 B 1 B 1
    """
    lines = [_ROW.format(*row) for row in _layer_rows(graph, schedule)]
    return [*lines, "", *_peak_lines(graph, schedule)]


def _layer_rows(graph: ComputationGraph, schedule: Schedule) -> list[tuple[str, str, str, str]]:
    """The headings, then what each layer keeps, recomputes and costs more, and all of them."""
    layers = layers_of(graph, schedule)
    rows = [("layer, largest first", "kept", "recomputed", f"extra {cost_name(graph)}")]
    rows += [_row(each.name, [each], graph.cost_unit) for each in layers[:_SHOWN]]
    rest = layers[_SHOWN:]
    if rest:
        rows.append(_row(f"and {len(rest)} more", rest, graph.cost_unit))
    return [*rows, _row("all", layers, graph.cost_unit)]


def _row(name: str, layers: Sequence[Layer], unit: str) -> tuple[str, str, str, str]:
    extra = sum(each.extra for each in layers)
    return (
        shortened(name, _NAME),
        format_bytes(sum(each.kept for each in layers)),
        format_bytes(sum(each.recomputed for each in layers)),
        f"{1000 * extra:.2f} ms" if unit == "s" else f"{extra:.4g}",
    )


def _peak_lines(graph: ComputationGraph, schedule: Schedule) -> list[str]:
    """Where most is held, and by whom, the largest first."""
    peak, steps = peak_of(graph, schedule), len(schedule)
    which = "backward" if peak.backward else "forward"
    lines = [
        f"peak of live values: {format_bytes(peak.bytes)}, at step {peak.place + 1} of {steps}",
        f"({shortened(peak.layer, 60)}, {which} pass); held then:",
    ]
    lines += [
        f"  {format_bytes(size):>10}  {shortened(name, 60)}" for name, size in peak.holders[:_SHOWN]
    ]
    rest = peak.holders[_SHOWN:]
    if rest:
        total = sum(size for _, size in rest)
        lines.append(f"  {format_bytes(total):>10}  in {len(rest)} more layers")
    return lines


def shortened(name: str, width: int) -> str:
    """A name of at most `width` characters: its end tells it from others."""
    return name if len(name) <= width else f"…{name[-width + 1 :]}"


def cost_name(graph: ComputationGraph) -> str:
    """What the graph's costs count; only seconds are time."""
    return {"s": "time", "": "cost"}.get(graph.cost_unit, graph.cost_unit)


def as_html(
    facts: Iterable[tuple[str, str]],
    notes: Iterable[str],
    graph: ComputationGraph,
    schedule: Schedule,
    picture: Picture | None,
) -> str:
    """A plan's tables and its picture; whatever the texts hold is shown as text.

    Args:
        facts: (what, how much).
        notes: what else the user should know.
        graph: of the schedule.
        schedule: that of the plan.
        picture: below the tables, or None.

    Example:
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> graph = unit_chain(2)
        >>> as_html([("<a>", "4 B")], [], graph, Schedule(range(5)), None)[:65]
        '<table><tr><th style="text-align:left">&lt;a&gt;</th><td style="t'
    """
    heading, *rows = _layer_rows(graph, schedule)
    parts = [
        _table([_cell("th", name, _LEFT) + _cell("td", value, _LEFT) for name, value in facts]),
        *(_cell("p", f"note: {note}") for note in notes),
        _table(
            [
                "".join(_cell("th", each) for each in heading),
                *(
                    _cell("td", name, _LEFT) + "".join(_cell("td", each) for each in others)
                    for name, *others in rows
                ),
            ]
        ),
        _cell("pre", "\n".join(_peak_lines(graph, schedule))),
    ]
    if picture is not None:
        source = f"data:image/png;base64,{base64.b64encode(picture.png()).decode()}"
        parts.append(f'<img alt="memory by layer, and the schedule" src="{source}">')
    return "\n".join(parts)


_LEFT = ' style="text-align:left"'


def _table(rows: Iterable[str]) -> str:
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _cell(tag: str, text: str, style: str = "") -> str:
    return f"<{tag}{style}>{escape(text)}</{tag}>"
