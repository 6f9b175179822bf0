"""Trials as cells, one process at a time, and the figures that every table needs of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median
from typing import Any

from experiments.paper.cells import Cell
from experiments.paper.executed.trial import Trial, run_trial
from experiments.paper.settings import Settings


def measured(settings: Settings, title: str, trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """What each trial measured; those that were done before are read."""
    cells = [
        Cell(f"{each.network} {each.way} {each.budget or ''}", run_trial, {"trial": each})
        for each in trials
    ]
    return settings.answers(title, cells, jobs=1)  # more at a time would spoil each other's times


def peak(figures: dict[str, Any]) -> int:
    """The most bytes of the measured steps."""
    return int(max(figures["peaks"]))


def added(figures: dict[str, Any]) -> int:
    """The most bytes that a step adds to what is held before it."""
    return peak(figures) - int(figures["resident"])


def times_plain(figures: dict[str, Any], way: str) -> float | None:
    """A step's time over that of the plain step before it, in the median; None if not timed.

    Neighbours are compared, since a shared machine changes its speed.
    """
    seconds = figures.get("compared_seconds")
    if not seconds:
        return None
    pairs = zip(seconds[way], seconds["plain"], strict=True)
    return float(median(one / plain for one, plain in pairs))


def budget_at(plain: dict[str, Any], share: float) -> int:
    """Resident bytes, and a share of what the plain step adds to them."""
    return int(plain["resident"] + share * added(plain))


def outcome(figures: dict[str, Any]) -> str:
    """How a trial ended, in a few words."""
    if figures["ended"] != "error":
        over = [each for each in figures.get("warnings", ()) if "a step held" in each]
        return "; ".join([str(figures["ended"]), *over]).replace("checkmate_tf: ", "")
    lines = [each.strip() for each in str(figures["why"]).splitlines() if each.strip()]
    told = [each for each in lines if "custom_gradient decorator" in each]
    errors = (
        told or [each for each in lines if "Error" in each][-1:] or lines[-1:] or ["no message"]
    )
    return "error: " + re.sub(r"\x1b\[\d+m", "", errors[0])[:120]
