"""Plans of a step that XLA compiles, from what it takes as it is to the least found.

Each is compiled, once, so that its bytes are the compiler's. XLA decides by itself what becomes of
a plan, so that the plans are spread evenly over live bytes, and each serves the bytes it takes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from checkmate_tf.devices.current import current_device
from checkmate_tf.planning.budget_sweep import Show, Sweep, nothing_to_recompute
from checkmate_tf.planning.compiled.planner import CompiledPlanner
from checkmate_tf.planning.compiled.search import Compiled, CompiledSearch
from checkmate_tf.planning.origins import with_origin
from checkmate_tf.planning.preparation import anything_to_gain, planning_of
from checkmate_tf.planning.request import Request
from checkmate_tf.plans.plan import Plan
from checkmate_tf.progress import points_progress
from profiles.measure.compiled_workspaces import compiler_name
from solvers import format_bytes

_LEAST_TIME = 0.25
"""Share of the time limit for the plan of the least memory; the other ones share the rest."""


def swept_compiled(
    concrete: Any, request: Request, count: int, arriving: int | None = None
) -> Sweep:
    """The step as it is and up to `count - 1` plans, none of which runs.

    Ctrl-C ends it with the plans made so far, once that of the least memory is known.

    Args:
        concrete: the step, traced for XLA.
        request: what plans are asked for; its budget is what the unchanged step needs ("100%").
        count: of plans, that of the unchanged step included.
        arriving: as for `CompiledPlanner.plan`.

    Raises:
        NotCompilableError: XLA can't compile the step.
        CheckmateError: nothing in the step can be recomputed, sizes are unknown, or it can't be
            compiled by itself.
    """
    with planning_of(None) as interrupts, points_progress(count) as show:
        show(0, "the step as it is")
        planner = CompiledPlanner(request)
        search = planner.search(concrete, request.batch_size, arriving, interrupts)
        if not anything_to_gain(search.graph):
            raise nothing_to_recompute()
        stopped = _compile_some(search, count, show)
        chosen = _worth_having([search.plain, *search.tried])
        return Sweep(
            plans=tuple(_plan_of(search, each) for each in chosen),
            impossible=None,
            asked=count,
            stopped=stopped,
        )


def _compile_some(search: CompiledSearch, count: int, show: Show) -> bool:
    """Compile the leanest plan, and others evenly between it and the step; whether Ctrl-C came."""
    try:
        show(1, "the least memory")
        leanest = search.compile_for(None, _LEAST_TIME)
        if leanest is None:
            return False
        least, most = search.live_bytes(leanest), _most_live(search, leanest)
        step = (most - least) / (count - 1)
        for number in range(1, count - 1):  # each search begins with the leaner plan before it
            live = least + number * step
            show(1 + number, f"live values of {format_bytes(int(live))}")
            search.compile_for(live, (1 - _LEAST_TIME) / (count - 2))
    except KeyboardInterrupt:
        if not search.tried:
            raise
        return True
    return False


def _most_live(search: CompiledSearch, leanest: Compiled) -> float:
    """Live bytes for which XLA is likely to take what it takes for the step as it is."""
    least, most = search.live_bytes(leanest), search.live_bytes(search.plain)
    likely = least * search.plain.added / max(1, leanest.added)
    return min(most, likely) if likely > least else most


def _worth_having(compiled: list[Compiled]) -> list[Compiled]:
    """The first, and those for which no other takes as little memory and as little time."""
    chosen = compiled[:1]
    for each in sorted(compiled[1:], key=lambda each: (each.cost, each.added)):
        if each.added < chosen[-1].added:
            chosen.append(each)
    return chosen


def _plan_of(search: CompiledSearch, compiled: Compiled) -> Plan:
    resident = search.question.resident
    plan = replace(search.planned(compiled).plan, budget=resident + compiled.added)
    device = compiler_name(current_device().name)
    return with_origin(plan, search.question.extracted, resident, device)
