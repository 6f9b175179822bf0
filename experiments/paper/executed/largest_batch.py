"""The largest batch that really trains under an allocator's limit, by bisection.

Every try is a process that trains a few steps, or ends in `ResourceExhaustedError`. The limit is
enforced as a GPU's memory is; oneDNN is off, since TensorFlow crashes at a limit with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from experiments.paper.executed.measure import measured, outcome, peak, times_plain
from experiments.paper.executed.trial import OURS, Trial
from experiments.paper.settings import Settings

_WAYS = (
    "plain",
    OURS,
    "tf.recompute_grad",
    "RematScope list_of_layers",
    "Grappler recomputation",
)

_STEPS, _TURNS = 3, 4

_SHARES = (0.9, 0.7)
"""Budgets of ours as shares of the limit: between its pieces the allocator needs room, too."""


def run(settings: Settings) -> None:
    """Search for every way; then time what was found."""
    quick = settings.quick
    name, side, limit = ("tiny", 32, 160 << 20) if quick else ("MobileNetV2", 64, 256 << 20)
    rows: list[dict[str, Any]] = []
    guess = 128 if quick else 40
    for way in ("plain", OURS) if quick else _WAYS:
        trial = Trial(name, 1, side, way, steps=_STEPS, batches=1, limit=limit, one_dnn=False)
        batch, found, figures = _searched(settings, trial, guess)
        is_timed = batch and way != "plain" and not quick
        plan = figures.get("plan")
        rows.append(
            {
                "network": name,
                "side": side,
                "limit, MiB": limit >> 20,
                "way": way,
                "largest batch": batch,
                "times plain's": batch / rows[0]["largest batch"] if rows else 1.0,
                "step time, times plain": _timed(settings, found) if is_timed else None,
                "planned overhead": plan["overhead"] if plan else None,
                "an extra forward pass": plan["share_of_forward"] if plan else None,
                "peak, MB": peak(figures) / 1e6 if fits(figures) else None,
                "outcome": outcome(figures),
            }
        )
        guess = 2 * batch if way == "plain" else rows[0]["largest batch"]
        settings.write_table("largest_batch", f"largest batch in {limit >> 20} MiB", rows)


def _searched(settings: Settings, trial: Trial, guess: int) -> tuple[int, Trial, dict[str, Any]]:
    """The largest batch of a way, the trial in which it trained, and what that measured."""
    step, precision = (2.0, 1.0) if settings.quick else (1.4, 0.06)
    batch = largest(lambda each: fits(_trained(settings, trial, each)[1]), guess, step, precision)
    return batch, *_trained(settings, trial, max(1, batch))


def _trained(settings: Settings, trial: Trial, batch: int) -> tuple[Trial, dict[str, Any]]:
    """The first of the tries with a batch that fits, or the last."""
    ours = _SHARES[:1] if settings.quick else _SHARES
    shares = ours if trial.way == OURS else (None,)
    for share in shares:
        budget = None if share is None else int(share * (trial.limit or 0))
        asked = replace(trial, batch=batch, budget=budget)
        title = f"largest batch, {trial.way}, {batch} images"
        (figures,) = measured(settings, title, [asked])
        if fits(figures):
            break
    return asked, figures


def fits(figures: dict[str, Any]) -> bool:
    """Whether it trained, and by its plan with at most one more forward pass."""
    plan = figures.get("plan")
    return figures["ended"] == "trained" and (
        plan is None or plan["overhead"] <= plan["share_of_forward"]
    )


def largest(fits: Callable[[int], bool], guess: int, step: float, precision: float) -> int:
    """The largest batch that fits, to a relative precision; 0 if none does.

    Args:
        fits: whether a batch does; if one does, all smaller ones do.
        guess: the first try.
        step: by which factor the next one is larger, or smaller, until the limit is between two.

    Example:
        >>> largest(lambda batch: batch <= 100, 48, 1.25, 0.01)
        100
        >>> largest(lambda batch: batch < 1, 48, 2, 0.01)
        0
    """
    low, high = 0, None
    batch = guess
    while high is None or (low and high - low > max(1, precision * low)) or (not low and high > 1):
        if fits(batch):
            low = batch
        else:
            high = batch
        if high is None:
            batch = max(low + 1, int(low * step))
        elif not low:
            batch = max(1, int(high / step))
        else:
            batch = (low + high) // 2
    return low


def _timed(settings: Settings, trial: Trial) -> float | None:
    """The step's time over the plain one's at the same batch, without a limit."""
    asked = replace(trial, limit=None, turns=_TURNS, steps=2)
    (figures,) = measured(settings, f"largest batch, {trial.way}, timed", [asked])
    return times_plain(figures, trial.way) if figures["ended"] == "trained" else None
