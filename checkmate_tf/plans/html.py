"""A plan as HTML, as notebooks show it: what `print(plan)` says, and the picture."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from checkmate_tf.picture_files import Picture


def as_html(
    facts: Iterable[tuple[str, str]],
    notes: Iterable[str],
    layers: Sequence[Sequence[str]],
    peak: Iterable[str],
    picture: Picture | None,
) -> str:
    """A plan's tables and its picture; whatever the texts hold is shown as text.

    Args:
        facts: (what, how much).
        notes: what else the user should know.
        layers: the headings, then a row for each layer.
        peak: lines about where most is held.
        picture: below them, or None.

    Example:
        >>> as_html([("budget", "4 B")], [], [("layer", "kept"), ("<a>", "1 B")], [], None)[:59]
        '<table><tr><th style="text-align:left">budget</th><td style'
    """
    heading, *rows = layers
    parts = [
        _table([f"{_left('th', name)}{_left('td', value)}" for name, value in facts]),
        *(f"<p>note: {escape(note)}</p>" for note in notes),
        _table(
            [
                "".join(f"<th>{escape(each)}</th>" for each in heading),
                *(_left("td", row[0]) + "".join(map(_cell, row[1:])) for row in rows),
            ]
        ),
        f"<pre>{escape(chr(10).join(peak))}</pre>",
    ]
    if picture is not None:
        source = f"data:image/png;base64,{base64.b64encode(picture.png()).decode()}"
        parts.append(f'<img alt="memory by layer, and the schedule" src="{source}">')
    return "\n".join(parts)


def _table(rows: Iterable[str]) -> str:
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _left(tag: str, text: str) -> str:
    return f'<{tag} style="text-align:left">{escape(text)}</{tag}>'


def _cell(text: str) -> str:
    return f"<td>{escape(text)}</td>"
