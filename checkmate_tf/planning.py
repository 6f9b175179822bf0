"""From a traced step and a budget to a plan that has been seen to keep it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from checkmate_tf.buffers import peak_of_run
from checkmate_tf.cost_models import step_costs
from checkmate_tf.extraction import Extraction, extract_program
from checkmate_tf.forecast import forecast
from checkmate_tf.measure import default_device, held_bytes, reserve
from checkmate_tf.plan import Plan
from checkmate_tf.plan_search import PlanSearch, Situation
from checkmate_tf.program import resolve
from checkmate_tf.rehearsal import Rehearsal, can_rehearse
from profiles.profile import Profile
from profiles.workspaces import MeasuredWorkspaces, stored_workspaces
from solvers import Budget, ComputationGraph, Schedule
from solvers.solution import Order

_ROOM = 64 << 20
"""Bytes for what a kernel needs while it runs: Eigen's convolutions fill the CPU's last cache."""


@dataclass(frozen=True)
class Request:
    """What the user asked for; see `checkmate_tf.rematerialize`."""

    budget: Budget
    solver: str
    batch_size: int | None
    costs: str | Profile
    time_limit: float
    order: Order
    rehearse: bool


@dataclass(frozen=True)
class PlannedStep:
    """A plan, the extraction that it belongs to, and the function that was rehearsed, if any."""

    plan: Plan
    extracted: Extraction
    function: Callable[..., Any] | None


def plan_step(concrete: Any, request: Request, margin: int = 0) -> PlannedStep | None:
    """Plan the step `concrete`; None if nothing in it can be computed again.

    `margin` bytes of the budget are left alone.

    Raises:
        BudgetError: no schedule was found within the budget.
        CheckmateError: sizes are unknown.
    """
    with tf.init_scope():
        program = resolve(concrete, request.batch_size)
        everything = range(len(program.operations))
        live = peak_of_run(program, everything, program.outputs, lambda operation: 0)
        reserve(program.fixed_bytes + live + _ROOM)
        costs = step_costs(request.costs, program)
        # After the costs: measuring those tells workspaces as well.
        device = default_device()
        workspaces = MeasuredWorkspaces(device, stored_workspaces(device))
        extracted = extract_program(program, costs.model, workspaces)
        if not _anything_to_gain(extracted.graph):
            return None
        situation = _situation(extracted, request, costs.notes, margin)
        rehearsal = None
        if request.rehearse and can_rehearse(extracted):
            rehearsal = Rehearsal(extracted)
        search = PlanSearch(situation, request.solver, request.order, request.time_limit, rehearsal)
        plan = search.leanest() if request.budget.least else search.run()
    function = rehearsal.function(plan.schedule) if rehearsal is not None else None
    return PlannedStep(plan, extracted, function)


def _situation(
    extracted: Extraction, request: Request, cost_notes: tuple[str, ...], margin: int
) -> Situation:
    graph = extracted.graph
    resident = max(graph.fixed_bytes, held_bytes() or 0)
    baseline = forecast(extracted, Schedule(range(len(graph))), resident).highest_of_ten
    least = request.budget.least
    return Situation(
        extracted=extracted,
        resident=resident,
        budget=resident if least else request.budget.in_bytes(resident, baseline),
        margin=margin,
        baseline_peak=baseline,
        notes=(*cost_notes, *_notes(extracted)),
    )


def _notes(extracted: Extraction) -> tuple[str, ...]:
    guessed = extracted.program.guessed
    if not guessed:
        return ()
    return (f"sizes of {len(guessed)} operations depend on data and were guessed",)


def _anything_to_gain(graph: ComputationGraph) -> bool:
    """Whether a value that could be computed again is held while other nodes run."""
    return any(
        node.recomputable and node.memory and graph.users[i] and graph.users[i][-1] > i + 1
        for i, node in enumerate(graph.nodes)
    )
