"""Which plan a step gets that XLA compiles, and when one is made."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from checkmate_tf.distribution.split import has_several_replicas
from checkmate_tf.graph.cost_models import step_costs
from checkmate_tf.graph.extraction import Extraction, extract_program
from checkmate_tf.interrupts import Interrupts, noted_interrupts
from checkmate_tf.memory.measure import held_bytes
from checkmate_tf.phases import phase
from checkmate_tf.planning.apart import apart
from checkmate_tf.planning.compiled.search import CompiledSearch
from checkmate_tf.planning.planner import PlannedStep
from checkmate_tf.planning.preparation import anything_to_gain, structure_of
from checkmate_tf.planning.request import Request
from checkmate_tf.plans.plan import Plan
from checkmate_tf.rewriting.max_pool_gradient import windows_of
from checkmate_tf.trace.inputs import captures
from checkmate_tf.trace.program import resolve
from checkmate_tf.trace.sizes import ArgumentSizes
from profiles.devices import default_device
from profiles.measure.compiled_workspaces import CompiledWorkspaces, compiler_name
from solvers import CheckmateError, ComputationGraph

_WORKSPACES: dict[str, CompiledWorkspaces] = {}
"""By XLA's name for a device: workspaces of compiled operations that this process knows."""


class CompiledPlanner:
    """Makes the plans of one decorated step where XLA compiles it."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._known: dict[ComputationGraph, tuple[PlannedStep, int]] = {}
        self._largest = 0  # bytes that the plain step adds, of the largest signature so far
        self._lock = threading.RLock()

    def plan(self, concrete: Any, sizes: ArgumentSizes | None) -> PlannedStep | None:
        """Plan the step `concrete`; None if nothing in it can be recomputed.

        Args:
            concrete: the step, traced for XLA.
            sizes: of inputs that were traced without them, as for `resolve`.

        Raises:
            BudgetError: no plan keeps the budget, though one takes less than the step as it is.
            CheckmateError: sizes are unknown, several replicas run the step, it can't be
                compiled by itself, or the request names a plan.
        """
        if self._request.plan is not None:
            raise CheckmateError(
                "xla-with-a-made-plan",
                "a plan that was made before is for steps that XLA does not compile: give a "
                "budget instead, or compile with jit_compile=False",
            )
        with self._lock, apart(), noted_interrupts() as interrupts:
            with phase("extract"):
                program = resolve(concrete, sizes)
            if has_several_replicas(program):
                raise CheckmateError(
                    "xla-with-replicas",
                    "the step of several replicas can't be planned for XLA: compile the model "
                    "with jit_compile=False",
                )
            _refuse_outer_tensors(program.concrete)
            workspaces = _workspaces(default_device())
            with phase("extract"):
                costs = step_costs(self._request.costs, program)
                extracted = extract_program(
                    program,
                    costs.model,
                    lambda each: 0 if windows_of(each) else workspaces(each),
                )
                notes = (*costs.notes, *_kept(workspaces))
            interrupts.pass_on()
            if not anything_to_gain(extracted.graph):
                return None
            return self._known_or_planned(extracted, notes, interrupts)

    def _known_or_planned(
        self, extracted: Extraction, notes: tuple[str, ...], interrupts: Interrupts
    ) -> PlannedStep:
        graph = extracted.graph
        key = structure_of(graph)
        resident = max(graph.fixed_bytes, held_bytes() or 0)
        if key in self._known:
            known = _moved(*self._known[key], resident, self._request)
            if known.beyond_budget != _within(known.plan):  # of this budget, too
                plan = replace(known.plan, graph=graph)
                return replace(known, plan=plan, extracted=extracted, source="")
        search = CompiledSearch(extracted, self._request, resident, notes, interrupts)
        under_way = search.plain.added <= self._largest
        self._largest = max(self._largest, search.plain.added)
        planned = search.run(self._largest, under_way)
        interrupts.pass_on()
        self._known[key] = planned, resident
        return planned


def _workspaces(device: str) -> CompiledWorkspaces:
    name = compiler_name(device)
    if name not in _WORKSPACES:
        _WORKSPACES[name] = CompiledWorkspaces.stored(device)
    return _WORKSPACES[name]


def _kept(workspaces: CompiledWorkspaces) -> tuple[str, ...]:
    """Keep them; a note where that can't be done, for then the next process compiles them anew."""
    try:
        workspaces.keep()
    except CheckmateError as error:
        return (f"workspaces not kept: {error}",)
    return ()


def _moved(planned: PlannedStep, before: int, resident: int, request: Request) -> PlannedStep:
    """A plan that was made when `before` bytes were held, where now `resident` are."""
    more, plan = resident - before, planned.plan
    assert plan.compiled_peak is not None
    assert plan.compiled_baseline_peak is not None
    plan = replace(
        plan,
        budget=plan.budget + more * (request.budget.bytes is None),
        predicted_peak=plan.predicted_peak + more,
        baseline_peak=plan.baseline_peak + more,
        compiled_peak=plan.compiled_peak + more,
        compiled_baseline_peak=plan.compiled_baseline_peak + more,
    )
    return replace(planned, plan=plan)


def _within(plan: Plan) -> bool:
    return plan.compiled_peak is not None and plan.compiled_peak <= plan.budget


def _refuse_outer_tensors(concrete: Any) -> None:
    """The step is compiled by itself, for which all that it reads must be there."""
    if any(not hasattr(captured, "numpy") for _, captured in captures(concrete)):
        raise CheckmateError(
            "xla-reads-outer-tensors",
            "the step reads tensors of the function around it, so that XLA can't compile it by "
            "itself to say what it takes: give them to the step as arguments, and keep variables "
            "outside of that function",
        )
