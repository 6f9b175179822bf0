"""Figure 1: what is held while one step runs, plain and rematerialized, as the allocator tells."""

from __future__ import annotations

from dataclasses import replace

from experiments.paper.executed.budgets import base_trial, our_trial
from experiments.paper.executed.measure import measured, outcome, peak
from experiments.paper.executed.pictures import curves
from experiments.paper.executed.trial import OURS
from experiments.paper.settings import Settings


def run(settings: Settings) -> None:
    """A network at half its memory; a picture, and the curves as a table."""
    name, share = ("tiny", 0.75) if settings.quick else ("U-Net", 0.5)
    base = base_trial(name)
    (known,) = measured(settings, "fig1", [base])
    trials = [replace(base, curve=True), our_trial(name, known, share)]
    plain, ours = measured(settings, "fig1", trials)
    if ours["ended"] != "trained":
        settings.console.print(f"fig1: {outcome(ours)}")
        return
    recorded = {"plain": plain["curve"], OURS: ours["curve"]}
    rows = [
        {"step": way, "seconds": moment, "bytes": held}
        for way, points in recorded.items()
        for moment, held in points
    ]
    settings.save_table("fig1", rows)
    peaks = {"plain": peak(plain), OURS: peak(ours)}
    curves(settings.output / "fig1.png", name, recorded, peaks, int(trials[1].budget or 0))
