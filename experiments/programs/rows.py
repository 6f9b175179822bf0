"""From what trials saw to a row, and from rows to a CSV file, a table and a sentence."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path
from typing import Any

from rich.table import Table

from solvers.graph.files import write_whole

Figures = dict[str, Any]
"""What `experiments.programs.trial.train` returns."""

Row = dict[str, Any]
"""A line of the CSV file; without what was not measured. Sizes are in bytes.

program, one_dnn, share, said: what was run; `said` is 1 where `batch_size=` was given.
outcome: "trained", "warned" (trained, and something was said), "unchanged" (trained without a
    plan), "refused" (an error of ours) or "failed" (another error).
message: of the error, else of the warnings.
plain: the most that a batch of the plain `fit` held, after the first one.
asked: resident + share × (plain − resident), from the plain `fit` itself.
budget, told, how, plain_told, plain_how, overhead: of the plan; how is "measured" or "forecast".
worst, next, batches, over: the largest and the second largest of our `fit` after the first batch,
    how many there were, and how many held more than the budget.
plain_seconds, seconds, ready: median seconds of a batch, and of our first one, which plans.
named, then, then_worst: the bytes that a refusal named, what came of them ("kept", "over",
    "refused", "failed"), and the largest batch.
bits: whether all logs and variables are those of the plain `fit`, with graph rewrites off: "equal",
    "unequal", or "own" where not even the plain `fit` repeats its own; "refused" or "failed" where
    no budget trained.
"""

COLUMNS = {
    "program": str, "one_dnn": int, "share": float, "said": int, "outcome": str, "plain": int,
    "asked": int, "budget": int, "told": int, "how": str, "plain_told": int, "plain_how": str,
    "overhead": float, "worst": int, "next": int, "batches": int, "over": int,
    "plain_seconds": float, "seconds": float, "ready": float, "named": int, "then": str,
    "then_worst": int, "bits": str, "message": str,
}  # fmt: skip


def outcome(figures: Figures) -> str:
    """In a word, what came of a `fit` within a budget."""
    if figures["error"]:
        return "refused" if figures["refused"] else "failed"
    if figures["plan"] is None:
        return "unchanged"
    return "warned" if figures["warnings"] else "trained"


def warm_peaks(figures: Figures) -> list[int]:
    """Bytes of all batches but the first, the largest first."""
    return sorted(figures["peaks"][1:], reverse=True)


def kept(figures: Figures, budget: int) -> str:
    """What came of a `fit` within the bytes that a refusal named."""
    if figures["error"]:
        return outcome(figures)
    return "over" if max(warm_peaks(figures), default=0) > budget else "kept"


def same_bits(one: Figures, other: Figures) -> bool:
    """Whether two trainings logged the same and ended at the same variables."""
    return bool(one["logs"] == other["logs"] and one["digest"] == other["digest"])


def row_of_plain(plain: Figures, share: float) -> Row:
    """What the plain `fit` held, and what the share asks for then."""
    peak, resident = max(warm_peaks(plain)), plain["held"][1]
    return {
        "plain": peak,
        "asked": int(resident + share * (peak - resident)),
        "plain_seconds": _middle(plain["seconds"][1:]),
    }


def row_of_ours(ours: Figures) -> Row:
    """What came of our `fit`."""
    message = ours["error"] + ": " + ours["said"] if ours["error"] else " | ".join(ours["warnings"])
    row: Row = {"outcome": outcome(ours), "message": message}
    if ours["seconds"]:
        row["ready"] = ours["seconds"][0]
    peaks, plan = warm_peaks(ours), ours["plan"]
    if peaks:
        row |= {"worst": peaks[0], "next": peaks[min(1, len(peaks) - 1)], "batches": len(peaks)}
        row["seconds"] = _middle(ours["seconds"][1:])
    if plan is not None:
        told, plain_told = plan["measured_peak"], plan["measured_baseline_peak"]
        row |= {
            "budget": plan["budget"],
            "told": told or plan["predicted_peak"],
            "how": "measured" if told else "forecast",
            "plain_told": plain_told or plan["baseline_peak"],
            "plain_how": "measured" if plain_told else "forecast",
            "overhead": plan["overhead"],
            "over": sum(each > plan["budget"] for each in peaks),
        }
    return row


def _middle(seconds: list[float]) -> float:
    return sorted(seconds)[len(seconds) // 2]


def key(row: Row) -> tuple[Any, ...]:
    """What a row is of."""
    return row["program"], row["one_dnn"], row["share"], row["said"]


def read_rows(path: Path) -> list[Row]:
    """The rows of a CSV file, none if it is not there."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {column: COLUMNS[column](value) for column, value in line.items() if value}
            for line in csv.DictReader(file)
        ]


def write_rows(path: Path, rows: list[Row]) -> None:
    """Replace the CSV file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: f"{each:.4g}" if isinstance(each, float) else each for name, each in row.items()}
        for row in rows
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.getvalue())


def as_table(rows: list[Row], title: str) -> Table:
    """The rows in MiB, in 100 columns; ~ is before a forecast."""
    table = Table(title=title, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("program", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    for heading in (
        "plain", "told", "asked", "budget", "told", "worst", "next", "over", "named", "bits",
    ):  # fmt: skip
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row["program"],
            row["outcome"],
            _size(row, "plain"),
            _size(row, "plain_told", "plain_how"),
            _size(row, "asked"),
            _size(row, "budget"),
            _size(row, "told", "how"),
            _size(row, "worst"),
            _size(row, "next"),
            f"{row['over']}/{row['batches']}" if "over" in row and "batches" in row else "",
            f"{_size(row, 'named')} {row.get('then', '')}".strip(),
            row.get("bits", ""),
        )
    return table


def _size(row: Row, name: str, how: str = "") -> str:
    if name not in row:
        return ""
    return ("~" if row.get(how) == "forecast" else "") + f"{row[name] / 2**20:.0f}"


def messages(rows: list[Row]) -> list[str]:
    """What was said of each program, the first sentence."""
    return [
        f"{row['program']}: {row['message'].split('. ')[0].split(' | ')[0]}"
        for row in rows
        if row.get("message")
    ]


def summary(rows: list[Row]) -> str:
    """The rows in one sentence."""
    outcomes = Counter(row["outcome"] for row in rows)
    planned = [row for row in rows if "budget" in row]
    over = sum(row.get("over", 0) > 0 for row in planned)
    named = [row for row in rows if "then" in row]
    compared = [row for row in rows if row.get("bits") in ("equal", "unequal", "own")]
    return (
        f"{len(rows)} programs: {', '.join(f'{n} {word}' for word, n in outcomes.most_common())}; "
        f"{over} of {len(planned)} that were planned over their budget; "
        f"{sum(row['then'] == 'kept' for row in named)} of {len(named)} named budgets kept; "
        f"{sum(row['bits'] == 'equal' for row in compared)} of {len(compared)} equal to the last "
        "bit."
    )
