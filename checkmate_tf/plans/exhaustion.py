"""Who holds the memory where a step has exhausted it, and what would help."""

from __future__ import annotations

from collections.abc import Iterator

from checkmate_tf.plans.layers import layer_names, moment_of, peak_of
from checkmate_tf.plans.plan import Plan
from solvers import ComputationGraph, Schedule, format_bytes
from solvers.graph.lifetimes import held_at

_SHOWN = 8
"""Layers, the largest first."""

_SAFE = 0.97
"""Share of the batch that would just fit by what the step takes; it is not quite in proportion."""


def who_holds(plan: Plan, held: int, limit: int | None, node: int | None = None) -> str:
    """Some lines for the user.

    Args:
        plan: the step ran by it.
        held: bytes that the device held before the step.
        limit: bytes that it may hold; None where nothing tells.
        node: of the plan's graph, for which there was no memory; None where that is not known, so
            that the moment is taken at which most is held.

    Example:
        >>> from solvers import solve
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> solution = solve(unit_chain(2), 5, "checkpoint_all")
        >>> plan = Plan(unit_chain(2), solution.schedule, 5, 5, 5, 0.0, solution)
        >>> print(who_holds(plan, 3, 4, node=2))
        no memory was left for 'v2'; held then, by the plan:
                 1 B  v0
                 1 B  v1
                 1 B  v2
        what would help: to free some of the 3 B that are held beside the step, or a smaller batch
    """
    place = None if node is None else _fullest(plan.graph, plan.schedule, node)
    moment = (
        peak_of(plan.graph, plan.schedule)
        if place is None
        else moment_of(plan.graph, plan.schedule, place)
    )
    lines = _lines_of_layers(plan, moment.place)
    which = "" if place is None else _named(moment.layer, lines)
    where = f"no memory was left for {which}" if which else "no memory was left"
    told = [f"{where}; held {'then' if which else 'at the peak'}, by the plan:"]
    for name, size in moment.holders[:_SHOWN]:
        line = f" ({lines[name]})" if lines.get(name) else ""
        told.append(f"  {format_bytes(size):>10}  {name}{line}")
    rest = moment.holders[_SHOWN:]
    if rest:
        total = format_bytes(sum(each for _, each in rest))
        told.append(f"  {total:>10}  in {len(rest)} more layers")
    return "\n".join([*told, f"what would help: {', or '.join(_what_helps(plan, held, limit))}"])


def _what_helps(plan: Plan, held: int, limit: int | None) -> Iterator[str]:
    """In a few words each, what takes the least of the user first."""
    beside = held - plan.graph.fixed_bytes
    if beside > 0:
        yield f"to free some of the {format_bytes(beside)} that are held beside the step"
    batch, smaller = None if plan.origin is None else plan.origin.batch_size, "a smaller batch"
    if batch is not None and limit is not None:
        assert plan.origin is not None
        adds, room = plan.peak - plan.origin.resident, limit - held
        fits = int(_SAFE * batch * room / adds) if 0 < room < adds else 0
        if fits:
            smaller = f"a batch of about {fits} instead of {batch}"
    yield smaller


def _fullest(graph: ComputationGraph, schedule: Schedule, node: int) -> int:
    """Where most is held of the steps that compute a node."""
    places = [place for place, each in enumerate(schedule.steps) if each == node]
    return max(places, key=lambda place: sum(held_at(graph, schedule, place).values()))


def _lines_of_layers(plan: Plan, place: int) -> dict[str, str]:
    """By layer, the line of the user's program that made the largest value held at a step."""
    if plan.origin is None or not plan.origin.lines:
        return {}
    names, found = layer_names(plan.graph), dict[str, str]()
    held = held_at(plan.graph, plan.schedule, place)
    for number, _ in sorted(held.items(), key=lambda pair: -pair[1]):
        found.setdefault(names[number], plan.origin.lines[number])
    return found


def _named(layer: str, lines: dict[str, str]) -> str:
    return f"{layer!r}, made at {lines[layer]}" if lines.get(layer) else repr(layer)
