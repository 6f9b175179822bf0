"""Peak and step time against budget, of ours and of what a TensorFlow user has today, measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from experiments.paper.executed.alternatives import ALTERNATIVES, SAME_BITS
from experiments.paper.executed.measure import (
    added,
    budget_at,
    measured,
    outcome,
    peak,
    times_plain,
)
from experiments.paper.executed.networks import KINDS, TRAINED
from experiments.paper.executed.pictures import frontiers
from experiments.paper.executed.trial import OURS, Trial
from experiments.paper.settings import Settings

SHARES: tuple[float, ...] = (0.75, 0.5)
"""Of what a plain step adds to what is held before it; besides, the least that is found."""

_TURNS, _STEPS = 5, 3
_BITS_SIDE = 64


def run(settings: Settings) -> None:
    """Train every network in every way, then compare bits; a table and a picture."""
    names = ("tiny",) if settings.quick else tuple(KINDS)
    rows: dict[str, list[dict[str, Any]]] = {}
    for compare in (False,) if settings.quick else (False, True):
        for name in names:
            bits = compared_bits(settings, name) if compare else {}
            rows[name] = network_rows(settings, name, bits)
            every = [each for name in names for each in rows.get(name, [])]
            settings.save_table("executed", every)
            frontiers(settings.output / "executed.png", every)
    settings.write_table("executed", "executed: peak and step time", every)


def network_rows(settings: Settings, name: str, bits: dict[str, str]) -> list[dict[str, Any]]:
    """One network, a row for every way and budget."""
    ways = ("plain", "tf.recompute_grad") if settings.quick else tuple(ALTERNATIVES)
    trials = [
        replace(base_trial(name), way=way, turns=0 if way == "plain" else _TURNS) for way in ways
    ]
    plain, *others = measured(settings, f"executed, {name}", trials)
    ours = [our_trial(name, plain, share) for share in (SHARES[:1] if settings.quick else SHARES)]
    if not settings.quick:
        ours.append(replace(ours[0], budget="min"))
    answers = [plain, *others, *measured(settings, f"executed, {name}", ours)]
    return [
        _row(each, answer, plain, bits.get(each.way))
        for each, answer in zip([*trials, *ours], answers, strict=True)
    ]


def base_trial(name: str) -> Trial:
    """The plain steps whose peak all shares are of."""
    workload = TRAINED[name]
    return Trial(name, workload.batch, workload.side, steps=_STEPS)


def our_trial(name: str, plain: dict[str, Any], share: float) -> Trial:
    """Rematerialized to a share of the plain step's memory."""
    return replace(
        base_trial(name),
        way=OURS,
        budget=budget_at(plain, share),
        turns=_TURNS,
        curve=True,
    )


def compared_bits(settings: Settings, name: str) -> dict[str, str]:
    """Which ways end in the plain step's bits after a few steps, on small images."""
    workload = TRAINED[name]
    side = min(workload.side, _BITS_SIDE)
    small = Trial(name, min(4, workload.batch), side, exact=True, one_dnn=False)
    (plain,) = measured(settings, f"bits, {name}", [small])
    trials = [replace(small, way=way) for way in SAME_BITS]
    trials.append(replace(small, way=OURS, budget=budget_at(plain, 0.6), time_limit=5.0))
    answers = measured(settings, f"bits, {name}", trials)
    return {
        each.way: same_bits(plain, answer) for each, answer in zip(trials, answers, strict=True)
    }


def same_bits(plain: dict[str, Any], other: dict[str, Any]) -> str:
    """Whether the variables are equal to the last bit, and if not, which differ."""
    if other["ended"] != "trained":
        return ""
    if other["digests"] == plain["digests"]:
        return "yes"
    trained = other["digests"]["trained"] == plain["digests"]["trained"]
    return "not the moving averages" if trained else "no"


def _row(
    trial: Trial, figures: dict[str, Any], plain: dict[str, Any], bits: str | None
) -> dict[str, Any]:
    trained = figures["ended"] == "trained"
    plan = figures.get("plan")
    if trained and trial.budget == "min":
        # The first call plans: its trial runs hold copies of the variables, and keep no budget.
        figures = {**figures, "peaks": figures["peaks"][1:]}
    budget = plan["budget"] if plan else None
    return {
        "network": trial.network,
        "batch": trial.batch,
        "side": trial.side,
        "way": trial.way if trial.budget != "min" else f"{trial.way}, least",
        "resident, MB": figures["resident"] / 1e6 if trained else None,
        "budget, MB": budget / 1e6 if budget else None,
        "peak, MB": peak(figures) / 1e6 if trained else None,
        "of plain's activation memory": added(figures) / added(plain) if trained else None,
        "times plain": times_plain(figures, trial.way) if trained else None,
        "planned overhead": plan["overhead"] if plan else None,
        "ready, s": figures["ready"] if trained else None,
        "same bits": bits,
        "outcome": outcome(figures),
    }
