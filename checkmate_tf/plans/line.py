"""One line about a plan: what it saves and costs, how long it took; and one about its step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checkmate_tf.phases import number_of
from checkmate_tf.plans.layers import model_name
from checkmate_tf.plans.plan import Plan
from solvers import format_bytes

_UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
_LEAST, _MOST = 10, 100_000
"""A size has so many of its unit: enough to tell two apart, and not too many to read."""


def line_about(plan: Plan, source: str) -> str:
    """What the user reads when a plan has been made or found.

    Args:
        plan: it.
        source: where it comes from, or what became of it.

    Example:
        >>> from dataclasses import replace
        >>> from solvers import solve
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> graph = replace(unit_chain(8), cost_unit="s")
        >>> solution = solve(graph, 6, "cutting_planes")
        >>> sizes = [each << 20 for each in (58, 57, 130)]
        >>> plan = Plan(graph, solution.schedule, *sizes, 0.153, solution, seconds={"solve": 21.3})
        >>> line_about(plan, "plan kept")
        '130 → 57 MiB forecast (budget 58 MiB), 15 % more time, planned in 21 s, plan kept'
        >>> line_about(replace(plan, budget=16 << 30), "plan kept").split(", ")[0]
        '130 → 57 MiB forecast (budget 16384 MiB)'
        >>> line_about(replace(plan, why_forecast="trial_run=False"), "").partition(", 15 %")[0]
        '130 → 57 MiB forecast (budget 58 MiB; not measured: trial_run=False)'
        >>> timed = replace(plan, plain_seconds=20.0, step_seconds=22.5, timed="in turn")
        >>> line_about(timed, "").split(", ")[1:3]
        ['13 % more time planned', '12 % measured']
    """
    before = plan.compiled_baseline_peak or plan.measured_baseline_peak or plan.baseline_peak
    unit, size = _unit_of(min(before, plan.peak, plan.budget))
    of_budget = (unit, size) if plan.budget < _MOST * size else _unit_of(plan.budget)
    unchanged = f"{before / size:.0f}"
    if plan.measured_baseline_peak is None and plan.measured_peak is not None:
        unchanged += " (forecast)"
    how = _how(plan)
    before_now = " before" if how == "measured" and not _is_new(plan) else ""
    why = f"; not measured: {plan.why_forecast}" if how == "forecast" and plan.why_forecast else ""
    parts = [
        f"{unchanged} → {plan.peak / size:.0f} {unit} {how}{before_now} "
        f"(budget {plan.budget / of_budget[1]:.0f} {of_budget[0]}{why})",
        extra_in_words(plan),
        _ready(plan),
        source,
    ]
    return ", ".join(filter(None, parts))


def line_about_unchanged(plan: Plan, source: str) -> str:
    """What the user reads where the step fits as it is, and runs unchanged.

    Example:
        >>> from solvers import solve
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> graph = unit_chain(8)
        >>> solution = solve(graph, 10, "checkpoint_all")
        >>> sizes = [each << 20 for each in (14950, 6041, 6041)]
        >>> plan = Plan(graph, solution.schedule, *sizes, 0.0, solution)
        >>> line_about_unchanged(plan, "plan kept")
        'fits: 5.9 GiB of 14.6 GiB (forecast), nothing is recomputed, plan kept'
    """
    parts = [
        f"fits: {format_bytes(plan.peak)} of {format_bytes(plan.budget)} ({_how(plan)})",
        "nothing is recomputed",
        _ready(plan),
        source,
    ]
    return ", ".join(filter(None, parts))


def extra_in_words(plan: Plan) -> str:
    """What a plan costs, as in "7.7 % more time", or "7.7 % more time planned, 8.1 % measured".

    What was not measured in turn is not said here: machines change their speed by a third.
    """
    planned, measured = plan.planned_overhead, plan.measured_overhead
    words = f"{_percent(planned)} more {plan.cost_name}" if planned else "no extra work"
    if measured is None or plan.timed != "in turn":
        return words
    if planned and plan.cost_name == "time":
        return f"{words} planned, {_percent(measured)} measured"
    return f"{words}, {_percent(measured)} more time measured"


def _is_new(plan: Plan) -> bool:
    return not plan.seconds or "solve" in plan.seconds


def _how(plan: Plan) -> str:
    """How its peak is known."""
    if plan.compiled_peak is not None:
        return "compiled"
    if plan.measured_peak is None:
        return "forecast"
    return "measured"


def _ready(plan: Plan) -> str:
    """After how long it could run; "" where nobody knows."""
    done = "planned" if _is_new(plan) else "ready"
    return f"{done} in {number_of(sum(plan.seconds.values()))} s" if plan.seconds else ""


def _unit_of(size: int) -> tuple[str, int]:
    return next((each for each in _UNITS if size >= _LEAST * each[1]), _UNITS[-1])


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if abs(share) < 0.0995 else f"{100 * share:.0f} %"


def step_in_words(document: Mapping[str, Any]) -> str:
    """What tells the step of a plan.json from others; older files don't say all of it.

    Example:
        >>> nodes = [{"name": f"net/conv_{number}/relu"} for number in range(3)]
        >>> origin = {"batch_size": 16, "optimizer": "adam"}
        >>> step_in_words(
        ...     {
        ...         "graph": "train_step",
        ...         "computation_graph": {"nodes": nodes},
        ...         "step": {"origin": origin},
        ...     }
        ... )
        'net (train_step), batch 16, adam'
    """
    name = document["graph"]
    model = model_name(str(each.get("name", "")) for each in document["computation_graph"]["nodes"])
    origin = (document.get("step") or {}).get("origin") or {}
    batch = origin.get("batch_size")
    parts = [
        f"{model} ({name})" if model else name,
        f"batch {batch}" if batch else "",
        origin.get("optimizer", ""),
    ]
    return ", ".join(filter(None, parts))
