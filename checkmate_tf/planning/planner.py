"""From a traced step and a budget to a plan whose measured peak is within the budget."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from checkmate_tf.distribution.emission import ReplicatedStep
from checkmate_tf.distribution.split import has_several_replicas
from checkmate_tf.graph.cost_models import step_costs
from checkmate_tf.graph.extraction import Extraction, extract_program
from checkmate_tf.interrupts import Interrupts, noted_interrupts
from checkmate_tf.memory.measure import held_bytes, reserve
from checkmate_tf.planning.apart import apart
from checkmate_tf.planning.baseline import Baseline, Baselines
from checkmate_tf.planning.plan import Plan
from checkmate_tf.planning.plan_search import PlanSearch, Situation
from checkmate_tf.planning.replicas import Replica, plan_replicas
from checkmate_tf.planning.request import Request
from checkmate_tf.planning.settings import KERNEL_ROOM, PATIENCE
from checkmate_tf.planning.trial_run import TrialRunner, can_run_for_trial, run_for_trial
from checkmate_tf.trace.buffers import peak_of_run
from checkmate_tf.trace.operations import describe
from checkmate_tf.trace.program import Program, resolve
from checkmate_tf.user_warnings import warn_user
from profiles.devices import default_device
from profiles.measure.workspaces import MeasuredWorkspaces, stored_workspaces
from solvers import Budget, BudgetError, ComputationGraph

_MEASURED: dict[str, MeasuredWorkspaces] = {}
"""By device: workspaces that this process has measured."""


@dataclass(frozen=True)
class PlannedStep:
    """A plan, the extraction that it belongs to, and the function that ran for trial, if any.

    Attributes:
        beyond_budget: the plan is the leanest one, and known to need more than the budget.
        keeps: whether it is expected to stay within the budget.
        replicated: the whole step, where several replicas run it; the plan is for one of them.
    """

    plan: Plan
    extracted: Extraction
    function: Callable[..., Any] | None
    beyond_budget: bool = False
    keeps: bool = True
    replicated: ReplicatedStep | None = None


@dataclass(frozen=True)
class _Known:
    """A plan that was made, and the bytes that the device held before its step."""

    plan: Plan
    resident: int

    def fits(self, situation: Situation) -> bool:
        """Whether it keeps the budget in another situation of a step with an equal graph."""
        most = max(self.plan.predicted_peak, self.plan.measured_peak or 0)
        return most - self.resident + situation.resident <= situation.limit


class Planner:
    """Makes the plans of one decorated step, for every signature that it is called with.

    A plan belongs to a graph: a step that is traced again and differs in its constants alone
    keeps the plan.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._known: dict[ComputationGraph, _Known] = {}
        self._baselines = Baselines()
        self._lock = threading.RLock()

    def plan(self, concrete: Any, batch_size: int | None, arriving: int = 0) -> PlannedStep | None:
        """Plan the step `concrete`; None if nothing in it can be recomputed.

        Args:
            concrete: the traced step.
            batch_size: the first dimension of inputs that were traced without one.
            arriving: bytes that the device will hold before the step and does not hold yet.

        Raises:
            BudgetError: no schedule was found within the budget. Where a larger signature
                has been planned, so that training is under way, and where the request says
                "min", this is a warning.
            CheckmateError: sizes are unknown, or the worker that plans for all failed.
        """
        request = self._request
        with self._lock, apart(), noted_interrupts() as interrupts:
            program = resolve(concrete, batch_size)
            if has_several_replicas(program):
                return self._plan_replicas(program, interrupts)
            extracted, notes = _extracted(program, request)
            if not _anything_to_gain(extracted.graph):
                return None
            resident = _resident(extracted.graph, arriving)
            run = partial(run_for_trial, extracted) if can_run_for_trial(extracted) else None
            return self._known_or_planned(extracted, notes, resident, run, interrupts)

    def _known_or_planned(
        self,
        extracted: Extraction,
        notes: tuple[str, ...],
        resident: int,
        run: TrialRunner | None,
        interrupts: Interrupts,
        exchange_peak: int = 0,
    ) -> PlannedStep:
        """A plan for what the device holds; `exchange_peak` bytes are needed in any case."""
        request, graph = self._request, extracted.graph
        structure = _structure(graph)
        # What several replicas do together can't run for one of them.
        measured = request.trial_run and request.budget.share is not None and not exchange_peak
        baseline = self._baselines.of(extracted, structure, resident, measured)
        if exchange_peak > baseline.forecast:
            baseline = replace(baseline, forecast=exchange_peak)
        counted_from = self._baselines.counted_from(baseline)
        situation = _situation(extracted, request, notes, baseline, counted_from)
        known = self._known.get(structure)
        if known is not None and known.fits(situation):
            plan = replace(known.plan, graph=graph, budget=situation.budget)
            return PlannedStep(plan, extracted, None)
        is_smaller = self._baselines.is_smaller(baseline)
        planned = _planned(situation, request, run, interrupts, is_smaller)
        self._baselines.note(baseline)
        interrupts.pass_on()
        self._remember(planned, situation)
        return planned

    def _plan_replicas(self, program: Program, interrupts: Interrupts) -> PlannedStep | None:
        """Plan a step that several replicas run, with a budget for each."""
        request = self._request

        def plan_one(replica: Replica) -> Plan:
            resident = max(replica.extracted.graph.fixed_bytes, replica.held or 0)
            return self._known_or_planned(
                replica.extracted,
                replica.notes,
                resident,
                replica.run_for_trial,
                interrupts,
                replica.exchange_peak,
            ).plan

        patience = PATIENCE * request.time_limit
        extract = partial(_extracted, request=request)
        planned = plan_replicas(program, extract, plan_one, _anything_to_gain, patience)
        if planned is None:
            return None
        step, plan = planned
        return PlannedStep(plan, step.replicas[0], None, replicated=step)

    def leaner(
        self, concrete: Any, batch_size: int | None, budget: int, margin: int
    ) -> PlannedStep:
        """As `plan`, within `budget` bytes of which `margin` bytes are left alone."""
        request = replace(self._request, budget=Budget(bytes=budget), on_infeasible="error")
        with self._lock, apart(), noted_interrupts() as interrupts:
            extracted, notes = _extracted(resolve(concrete, batch_size), request)
            structure = _structure(extracted.graph)
            resident = _resident(extracted.graph)
            baseline = self._baselines.of(extracted, structure, resident, run=False)
            situation = _situation(extracted, request, notes, baseline, baseline.peak)
            situation = replace(situation, margin=margin)
            run = partial(run_for_trial, extracted) if can_run_for_trial(extracted) else None
            planned = _planned(situation, request, run, interrupts, is_smaller=False)
            interrupts.pass_on()
            self._remember(planned, situation)
            return planned

    def _remember(self, planned: PlannedStep, situation: Situation) -> None:
        key = _structure(planned.extracted.graph)
        self._known[key] = _Known(planned.plan, situation.resident)


def plan_elsewhere(extracted: Extraction, request: Request, notes: tuple[str, ...]) -> PlannedStep:
    """Plan for a device that holds nothing but the step; nothing runs here.

    Raises:
        BudgetError: no schedule was found within the budget.
    """
    with noted_interrupts() as interrupts:
        graph = extracted.graph
        baseline = Baselines().of(extracted, _structure(graph), graph.fixed_bytes, run=False)
        situation = _situation(extracted, request, notes, baseline, baseline.peak)
        planned = _planned(situation, request, None, interrupts, is_smaller=False)
        interrupts.pass_on()
        return planned


def _extracted(program: Program, request: Request) -> tuple[Extraction, tuple[str, ...]]:
    """The step's graph and what the user should know of it."""
    everything = range(len(program.operations))
    live = peak_of_run(program, everything, program.outputs, lambda operation: 0)
    reserve(program.fixed_bytes + live + KERNEL_ROOM)
    costs = step_costs(request.costs, program)
    # After the costs: measuring those tells workspaces as well.
    device = default_device()
    extracted = extract_program(program, costs.model, device_workspaces(device))
    return extracted, (*costs.notes, *_notes(extracted))


def device_workspaces(device: str) -> MeasuredWorkspaces:
    """What is known of the device's workspaces; what this process has measured stays as it is.

    Measured again it might differ a little, and a step that is traced again would look like
    another.
    """
    measured = _MEASURED.setdefault(device, MeasuredWorkspaces(device))
    for operation, size in stored_workspaces(device).items():
        measured.known.setdefault(operation, size)
    return measured


def _planned(
    situation: Situation,
    request: Request,
    run: TrialRunner | None,
    interrupts: Interrupts,
    is_smaller: bool,
) -> PlannedStep:
    extracted = situation.extracted
    search = PlanSearch(
        situation,
        request.solver,
        request.order,
        request.time_limit,
        run if request.trial_run else None,
        interrupts,
    )
    try:
        found = search.leanest() if request.budget.least else search.run()
    except BudgetError as error:
        if request.on_infeasible != "min" and not is_smaller:
            raise
        why = "a larger signature was planned before, so " if is_smaller else ""
        note = f"{error}; {why}the leanest plan found runs"
        warn_user(note)
        found = search.leanest(solver="auto")
        plan = replace(found.plan, budget=situation.budget, notes=(*found.plan.notes, note))
        return PlannedStep(plan, extracted, found.function, beyond_budget=True, keeps=False)
    return PlannedStep(found.plan, extracted, found.function, keeps=found.keeps)


def _structure(graph: ComputationGraph) -> ComputationGraph:
    """The graph without the names, which differ from trace to trace."""
    nodes = tuple(replace(node, name="") for node in graph.nodes)
    return replace(graph, nodes=nodes, name="")


def _resident(graph: ComputationGraph, arriving: int = 0) -> int:
    """Bytes that the device holds before the step."""
    return max(graph.fixed_bytes, (held_bytes() or 0) + arriving)


def _situation(
    extracted: Extraction,
    request: Request,
    notes: tuple[str, ...],
    baseline: Baseline,
    counted_from: int,
) -> Situation:
    resident, budget = baseline.resident, request.budget
    return Situation(
        extracted=extracted,
        resident=resident,
        budget=resident if budget.least else budget.in_bytes(resident, counted_from),
        margin=0,
        baseline_peak=baseline.forecast,
        notes=(*notes, baseline.note) if baseline.note else notes,
        measured_baseline_peak=baseline.measured,
    )


def _notes(extracted: Extraction) -> tuple[str, ...]:
    """What is said of operations whose memory can't be told, here and as a warning."""
    unknown = extracted.unknown
    if not unknown:
        return ()
    count = "1 operation" if len(unknown) == 1 else f"{len(unknown)} operations"
    note = (
        f"the memory of {count} depends on data and can't be told, {describe(unknown[0])} for "
        "one: the plan may need more than the budget"
    )
    warn_user(note)
    return (note,)


def _anything_to_gain(graph: ComputationGraph) -> bool:
    """Whether a value that could be recomputed is held while other nodes run."""
    return any(
        node.recomputable and node.memory and graph.users[i] and graph.users[i][-1] > i + 1
        for i, node in enumerate(graph.nodes)
    )
