"""From a traced step and a budget to a plan that has been seen to keep it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from checkmate_tf.cli_progress import solver_progress
from checkmate_tf.cost_models import step_costs
from checkmate_tf.extraction import Extraction, extract_program
from checkmate_tf.measure import default_device, held_bytes
from checkmate_tf.plan import Plan
from checkmate_tf.program import resolve
from checkmate_tf.rehearsal import can_rehearse, rehearse
from checkmate_tf.rewriting import as_function
from profiles.profile import Profile
from profiles.workspaces import MeasuredWorkspaces
from solvers import (
    Budget,
    BudgetError,
    ComputationGraph,
    Solution,
    Status,
    format_bytes,
    solve,
)
from solvers.least_memory import find_least_memory
from solvers.solution import Order

SLACK = 0.12
"""Share of the activations' part of a budget that the first plan leaves to the allocator, which
hands out buffers of up to twice the size asked for."""

_MOST_REHEARSALS = 4


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
    """A plan, and the extraction that it belongs to."""

    plan: Plan
    extracted: Extraction


def plan_step(concrete: Any, request: Request) -> PlannedStep | None:
    """Plan the step `concrete`; None if nothing in it can be computed again.

    Raises:
        BudgetError: no schedule was found within the budget.
        CheckmateError: sizes are unknown.
    """
    workspaces = MeasuredWorkspaces(default_device())
    with tf.init_scope():
        program = resolve(concrete, request.batch_size)
        costs = step_costs(request.costs, program)
        extracted = extract_program(program, costs.model, workspaces)
    graph = extracted.graph
    if not _anything_to_gain(graph):
        return None
    resident = max(graph.fixed_bytes, held_bytes() or 0)
    if request.budget.least:
        search = _Search(extracted, request, resident, resident, costs.notes)
        return PlannedStep(search.leanest(), extracted)
    budget = request.budget.in_bytes(
        resident, extracted.unchanged_peak + resident - graph.fixed_bytes
    )
    search = _Search(extracted, request, budget, resident, costs.notes)
    return PlannedStep(search.run(), extracted)


def _anything_to_gain(graph: ComputationGraph) -> bool:
    """Whether a value that could be computed again is held while other nodes run."""
    return any(
        node.recomputable and node.memory and graph.users[i] and graph.users[i][-1] > i + 1
        for i, node in enumerate(graph.nodes)
    )


class _Search:
    """Plans and rehearsals until a plan keeps the budget on the device."""

    def __init__(
        self,
        extracted: Extraction,
        request: Request,
        budget: int,
        resident: int,
        cost_notes: tuple[str, ...],
    ) -> None:
        self.extracted = extracted
        self.request = request
        self.budget = budget
        self.resident = resident
        self.cost_notes = cost_notes
        self.failed: Solution

    def run(self) -> Plan:
        """The first plan whose measured peak is within the budget, else the leanest one seen."""
        allowed = self.budget - self.resident
        share = 1 - SLACK
        limit = self.request.time_limit / 3
        plan = self._plan(share * allowed, limit) or self._plan(allowed, limit)
        if plan is None:
            raise self._too_small()
        if not (self.request.rehearse and can_rehearse(self.extracted)):
            return plan
        seen: list[Plan] = []
        for _ in range(_MOST_REHEARSALS):
            plan = self._rehearsed(plan)
            seen.append(plan)
            if plan.measured_peak is not None and plan.measured_peak <= self.budget:
                return plan
            share *= self._shrink(plan, allowed)
            following = self._plan(share * allowed, limit / 2)
            if following is None:
                break
            plan = following
        return self._best_effort(seen)

    def leanest(self) -> Plan:
        """The plan of the least memory; its budget is what the model says that it needs."""
        plan = self._plan(None, self.request.time_limit)
        assert plan is not None
        plan = replace(plan, budget=plan.predicted_peak)
        can_look = self.request.rehearse and can_rehearse(self.extracted)
        return self._rehearsed(plan) if can_look else plan

    def _plan(self, activations: float | None, time_limit: float) -> Plan | None:
        """A plan whose activations take so many bytes by the memory model, if one is found.

        None stands for the least that is found.
        """
        graph = self.extracted.graph
        request = self.request
        with solver_progress(graph, time_limit) as show:
            solution = solve(
                graph,
                "min" if activations is None else max(1, graph.fixed_bytes + int(activations)),
                request.solver,
                time_limit,
                order=request.order,
                on_progress=show,
            )
        if solution.schedule is None:
            self.failed = solution
            return None
        assert solution.cost is not None
        assert solution.peak is not None
        beside = self.resident - graph.fixed_bytes
        return Plan(
            graph=graph,
            schedule=solution.schedule,
            budget=self.budget,
            predicted_peak=solution.peak + beside,
            baseline_peak=self.extracted.unchanged_peak + beside,
            overhead=solution.cost / graph.one_pass_cost - 1,
            solution=solution,
            notes=self._notes(),
        )

    def _rehearsed(self, plan: Plan) -> Plan:
        with tf.init_scope():
            run = as_function(self.extracted, plan.schedule)
            return replace(plan, measured_peak=rehearse(self.extracted, run))

    def _shrink(self, plan: Plan, allowed: int) -> float:
        """How much smaller the next plan must be for its measured peak to come out right."""
        if plan.measured_peak is None:
            return 0.9
        return min(0.98, 0.99 * allowed / (plan.measured_peak - self.resident))

    def _best_effort(self, seen: list[Plan]) -> Plan:
        measured = [plan for plan in seen if plan.measured_peak is not None]
        if not measured:
            raise BudgetError(
                f"every plan within {format_bytes(self.budget)} exhausted the device's memory"
            )
        best = min(measured, key=lambda plan: plan.measured_peak or 0)
        note = (
            f"the leanest plan found was measured at {format_bytes(best.measured_peak or 0)}, "
            f"over the budget of {format_bytes(self.budget)}"
        )
        warnings.warn(f"checkmate_tf: {note}", stacklevel=2)
        return replace(best, notes=(*best.notes, note))

    def _too_small(self) -> BudgetError:
        beside = self.resident - self.extracted.graph.fixed_bytes
        graph, request = self.extracted.graph, self.request
        known = find_least_memory(graph, request.order, request.time_limit / 4)
        least = min(known.peak, self.failed.least_budget or known.peak)
        proved = self.failed.status is Status.INFEASIBLE
        how = "no schedule exists" if proved else "no schedule was found"
        return BudgetError(
            f"budget {format_bytes(self.budget)} is too small: {how} within it, "
            f"{format_bytes(self.resident)} of it variables, inputs and what else is held; "
            f"the least found is {format_bytes(least + beside)} ({least + beside} bytes), "
            f"and none is possible below {format_bytes(known.bound + beside)}",
            least=least + beside,
        )

    def _notes(self) -> tuple[str, ...]:
        guessed = self.extracted.program.guessed
        if not guessed:
            return self.cost_notes
        note = f"sizes of {len(guessed)} operations depend on data and were guessed"
        return (*self.cost_notes, note)
