"""Feng and Huang's executed table (CVPR 2021): the same cut of activation memory, and its price."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from experiments.paper.executed.budgets import base_trial, our_trial
from experiments.paper.executed.measure import added, measured, outcome, times_plain
from experiments.paper.executed.networks import PUBLISHED
from experiments.paper.executed.pictures import cuts
from experiments.paper.executed.trial import OURS
from experiments.paper.published import FENG_HUANG
from experiments.paper.settings import Settings

_PRECISELY = 0.01
"""By how much a cut may be less than theirs; theirs are printed in whole percent."""

_TURNS = 7


def run(settings: Settings) -> None:
    """Plain and rematerialized steps of every network; a table and a picture."""
    rows: list[dict[str, Any]] = []
    for name in ("tiny",) if settings.quick else PUBLISHED:
        rows.append(network_row(settings, name))
        settings.write_table("least_memory", "least memory: Feng and Huang's cuts, executed", rows)
    cuts(settings.output / "least_memory.png", rows)


def network_row(settings: Settings, name: str) -> dict[str, Any]:
    """Theirs beside ours, for one network."""
    theirs = FENG_HUANG.get(name.removesuffix(" 224"))
    cut = theirs.cut if theirs else 0.25
    (plain,) = measured(settings, f"least memory, {name}", [base_trial(name)])
    trial = our_trial(name, plain, 1 - cut)
    if not settings.quick:
        trial = replace(trial, curve=False, turns=_TURNS)
    (ours,) = measured(settings, f"least memory, {name}", [trial])
    trained = ours["ended"] == "trained"
    reached = 1 - added(ours) / added(plain) if trained else None
    times = times_plain(ours, OURS) if trained else None
    enough = reached is not None and reached >= cut - _PRECISELY
    return {
        "network": name.removesuffix(" 224"),
        "their batch": theirs.batch if theirs else None,
        "batch": trial.batch,
        "side": trial.side,
        "plain activation memory, MB": added(plain) / 1e6,
        "their cut": cut,
        "cut": reached,
        "their extra time": theirs.extra_time if theirs else None,
        "extra time": times - 1 if times else None,
        "planned overhead": ours["plan"]["overhead"] if trained else None,
        "same cut at half the overhead": _verdict(enough, times, theirs),
        "outcome": outcome(ours),
    }


def _verdict(enough: bool, times: float | None, theirs: Any) -> str:
    if times is None or theirs is None:
        return ""
    return "yes" if enough and times - 1 <= theirs.extra_time / 2 else "no"
