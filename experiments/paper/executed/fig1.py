"""Figure 1: what is held while one step runs, plain and rematerialized, as the allocator tells."""

from __future__ import annotations

from experiments.paper.executed.budgets import base_trial, our_trial
from experiments.paper.executed.measure import measured, outcome, peak
from experiments.paper.executed.pictures import curves
from experiments.paper.executed.trial import OURS
from experiments.paper.settings import Settings


def run(settings: Settings) -> None:
    """A network at half its memory; a picture, and the curves as a table."""
    name, share = ("tiny", 0.75) if settings.quick else ("U-Net", 0.5)
    (plain,) = measured(settings, "fig1", [base_trial(name)])
    trial = our_trial(name, plain, share)
    (figures,) = measured(settings, "fig1", [trial])
    if figures["ended"] != "trained":
        settings.console.print(f"fig1: {outcome(figures)}")
        return
    rows = [
        {"step": way, "seconds": moment, "bytes": held}
        for way, points in figures["curves"].items()
        for moment, held in points
    ]
    settings.save_table("fig1", rows)
    peaks = {"plain": peak(plain), OURS: peak(figures)}
    curves(settings.output / "fig1.png", name, figures["curves"], peaks, int(trial.budget or 0))
