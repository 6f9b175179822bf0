"""The tables of what XLA takes for steps, with and without a plan."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table


def print_table(rows: list[dict[str, Any]]) -> None:
    """One line for each row."""
    title = "Temporary memory of steps that XLA compiles"
    table = Table(title=title, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("step", max_width=18)
    columns = (
        "plain\nMB", "asked\n%", "got\nMB", "got\n%", "kept", "plans", "off\n%",
        "variables\ndiffer", "× plain\ntime",
    )  # fmt: skip
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            _name(row),
            f"{row['plain_temporary'] / 1e6:.1f}",
            f"{100 * row['share']:.0f}",
            f"{row['temporary'] / 1e6:.1f}",
            f"{100 * row['got']:.1f}",
            "yes" if row["kept"] else "no",
            str(row["compilations"]),
            f"{100 * row['forecast_error']:+.1f}",
            f"{row['different']} of {row['variables']}"
            + (f"\nby {row['distance']:.0e}" if row.get("distance") else ""),
            "" if row["slowdown"] is None else f"{row['slowdown']:.2f}",
        )
    Console().print(table)
    print("plans: how many were compiled; off: how far the forecast of that plan was")
    print("by: ‖planned − plain‖ ÷ what the plain steps have changed")


def print_readiness(rows: list[dict[str, Any]]) -> None:
    """How long each step took until it could run; rows without these figures are left out."""
    timed = [row for row in rows if "solve_seconds" in row]
    if not timed:
        return
    table = Table(
        title="Seconds until the step can run", box=None, pad_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column("step", max_width=24)
    columns = ("asked\n%", "plain", "planned", "of it\nsolve", "the rest\n÷ plain", "plans")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for row in timed:
        ready, solve = row["plan_seconds"] + row["compile_seconds"], row["solve_seconds"]
        plain = row["plain_compile_seconds"]
        table.add_row(
            _name(row),
            f"{100 * row['share']:.0f}",
            f"{plain:.1f}",
            f"{ready:.1f}",
            f"{solve:.1f}",
            f"{(ready - solve) / plain:.1f}",
            str(row["compilations"]),
        )
    Console().print(table)
    print("plain, planned: from the call to the compiled step; plans: how many were compiled")


def print_float64(rows: list[dict[str, Any]]) -> None:
    """How far both steps are from float64; rows without these figures are left out."""
    compared = [row for row in rows if row.get("from_float64")]
    if not compared:
        return
    table = Table(
        title="Distance from the same steps in float64",
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("step", max_width=24)
    for name in ("asked\n%", "plain", "planned", "one from\nthe other"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in compared:
        distances = (*row["from_float64"], row["distance"])
        table.add_row(
            _name(row), f"{100 * row['share']:.0f}", *(f"{each:.1e}" for each in distances)
        )
    Console().print(table)
    print("‖one − the other‖ ÷ what the steps have changed")


def _name(row: dict[str, Any]) -> str:
    precision = f", {row['precision']}" if row["precision"] != "float32" else ""
    scheduler = ", depth first" if row["depth_first"] else ""
    return f"{row['model']} {row['batch']}×{row['side']} {row['optimizer']}{precision}{scheduler}"
