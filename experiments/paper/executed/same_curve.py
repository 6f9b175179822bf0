"""A real training, plain and in half the memory: the same losses, to the last bit.

MobileNetV2 on scikit-learn's handwritten digits, enlarged. Graph rewrites and oneDNN are off, since
with them not even a plain step that is traced otherwise has the same bits.
"""

from __future__ import annotations

from dataclasses import replace

from experiments.paper.executed.budgets import same_bits
from experiments.paper.executed.measure import added, budget_at, measured, outcome, peak
from experiments.paper.executed.pictures import losses
from experiments.paper.executed.trial import OURS, Trial
from experiments.paper.settings import Settings

_DIGITS = 1797


def run(settings: Settings) -> None:
    """Train twice; the losses as a table and a picture."""
    if settings.quick:
        trial, share = Trial("tiny", 8, 32, steps=6, exact=True, one_dnn=False), 0.9
    else:
        batches = _DIGITS // 32
        trial = Trial(
            "MobileNetV2", 32, 32, steps=3 * batches, batches=batches, exact=True, one_dnn=False
        )
        share = 0.5
    (plain,) = measured(settings, "same curve, plain", [trial])
    ours_trial = replace(trial, way=OURS, budget=budget_at(plain, share))
    (ours,) = measured(settings, "same curve, ours", [ours_trial])
    if ours["ended"] != "trained":
        settings.console.print(f"same_curve: {outcome(ours)}")
        return
    rows = [
        {"step": number, "plain loss": repr(one), "loss": repr(other)}
        for number, (one, other) in enumerate(zip(plain["losses"], ours["losses"], strict=True))
    ]
    settings.save_table("same_curve", rows)
    summary = {
        "network": trial.network,
        "batch": trial.batch,
        "side": trial.side,
        "steps": trial.steps,
        "plain peak, MB": peak(plain) / 1e6,
        "budget, MB": int(ours_trial.budget or 0) / 1e6,
        "peak, MB": peak(ours) / 1e6,
        "of plain's activation memory": added(ours) / added(plain),
        "first loss": plain["losses"][0],
        "last loss": plain["losses"][-1],
        "losses equal": sum(
            one == other for one, other in zip(plain["losses"], ours["losses"], strict=True)
        ),
        "same bits": same_bits(plain, ours),
    }
    settings.write_table("same_curve_summary", "the same curve", [summary])
    losses(settings.output / "same_curve.png", plain["losses"], ours["losses"], summary)
