"""The tables of `experiments.gpu`; sizes in GB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from experiments.gpu.cases import Case

Done = Mapping[Case, Any]


def tables(done: Done) -> list[Table]:
    """One for each thing that was looked at, if it has rows."""
    made = [make(done, xla) for xla in (True, False) for make in (_memory, _times)]
    return [table for table in [*made, _limits(done), _bits(done)] if table.row_count]


def errors(done: Done) -> list[str]:
    """What failed, and its last words."""
    return [
        f"{case}{', XLA' * case.xla}, {case.look}: {found['error']}"
        for case, found in done.items()
        if "error" in found
    ]


def _rows(done: Done, look: str) -> list[tuple[Case, Any]]:
    return [(c, f) for c, f in done.items() if c.look == look and "error" not in f]


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    return table


def _gb(size: float) -> str:
    return f"{size / 1e9:.2f}"


def _steps(done: Done, xla: bool) -> list[tuple[Case, Any]]:
    return [(case, found) for case, found in _rows(done, "steps") if case.xla == xla]


def _with_xla(xla: bool) -> str:
    return "compiled by XLA, Keras' default" if xla else "without XLA"


def _memory(done: Done, xla: bool) -> Table:
    table = _table(
        f"GB, {_with_xla(xla)}; in brackets the first step",
        "model", "share", "plain", "", "budget", "ours", "", "of it",
    )  # fmt: skip
    for case, found in _steps(done, xla):
        peaks = [found[name]["peaks"] for name in ("plain", "ours")]
        (plain, first), (ours, first_of_ours) = ((max(each[1:]), each[0]) for each in peaks)
        table.add_row(
            str(case) if found["xla"][1] == xla else f"{case}, XLA left",
            f"{100 * case.share:.0f} %",
            _gb(plain),
            f"({_gb(first)})",
            _gb(found["budget"]),
            _gb(ours),
            f"({_gb(first_of_ours)})",
            f"{ours / found['budget']:.3f}",
        )
    return table


def _times(done: Done, xla: bool) -> Table:
    table = _table(
        f"time, {_with_xla(xla)}",
        "model", "plain", "ours", "told", "measured", "first\nstep", "planned", "plans",
    )  # fmt: skip
    for case, found in _steps(done, xla):
        taken = found["milliseconds"]
        table.add_row(
            str(case),
            f"{taken['plain']:.1f} ms",
            f"{taken['ours']:.1f} ms",
            f"{100 * found['overhead']:.1f} %",
            f"{100 * (taken['ours'] / taken['plain'] - 1):.1f} %",
            *(f"{found[name]['seconds'][0]:.0f} s" for name in ("plain", "ours")),
            str(found["plans"] or ""),
        )
    return table


def _limits(done: Done) -> Table:
    table = _table("GB, under an allocator's limit", "model", "XLA", "limit", "plain", "ours")
    for case, found in _rows(done, "limit"):
        ends = (_end(found[name]) for name in ("plain", "ours"))
        table.add_row(str(case), "on" if case.xla else "off", _gb(found["limit"]), *ends)
    return table


def _end(found: Any) -> str:
    if "error" in found:
        return "failed"
    return "exhausted" if found["exhausted"] else f"at most {_gb(found['peak'])}"


def _bits(done: Done) -> Table:
    table = _table(
        "variables that differ after three steps, and by what share of their change",
        "model", "XLA", "variables", "ours\nfrom plain", "plain\nfrom plain",
    )  # fmt: skip
    for case, found in _rows(done, "bits"):
        table.add_row(
            str(case),
            "on" if found["xla"] else "off",
            str(found["variables"]),
            f"{found['differ']} ({found['distance']:.0e})",
            f"{found['own']} ({found['own distance']:.0e})",
        )
    return table
