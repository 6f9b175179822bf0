"""From a traced step and a budget to a plan whose measured peak is within the budget."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import tensorflow as tf

from checkmate_tf.graph.cost_models import step_costs
from checkmate_tf.graph.extraction import Extraction, extract_program
from checkmate_tf.interrupts import Interrupts, noted_interrupts
from checkmate_tf.memory.measure import held_bytes, reserve
from checkmate_tf.planning.apart import apart
from checkmate_tf.planning.baseline import Baseline, Baselines
from checkmate_tf.planning.plan import Plan
from checkmate_tf.planning.plan_search import PlanSearch, Situation
from checkmate_tf.planning.request import Request
from checkmate_tf.planning.settings import KERNEL_ROOM
from checkmate_tf.planning.trial_run import can_run_for_trial, run_for_trial
from checkmate_tf.trace.buffers import peak_of_run
from checkmate_tf.trace.operations import describe
from checkmate_tf.trace.program import Program, resolve
from checkmate_tf.user_warnings import warn_user
from profiles.devices import default_device
from profiles.measure.workspaces import MeasuredWorkspaces, stored_workspaces
from solvers import Budget, BudgetError, CheckmateError, ComputationGraph

_MEASURED: dict[str, MeasuredWorkspaces] = {}
"""By device: workspaces that this process has measured."""

_COLLECTIVES = ("Collective", "Nccl")
"""How the types of operations begin that wait for their like on other devices."""


@dataclass(frozen=True)
class PlannedStep:
    """A plan, the extraction that it belongs to, and the function that ran for trial, if any.

    Attributes:
        beyond_budget: the plan is the leanest one, and known to need more than the budget.
        keeps: whether it is expected to stay within the budget.
    """

    plan: Plan
    extracted: Extraction
    function: Callable[..., Any] | None
    beyond_budget: bool = False
    keeps: bool = True


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
            CheckmateError: sizes are unknown, or the step runs on several devices.
        """
        request = self._request
        with self._lock, apart(), noted_interrupts() as interrupts:
            extracted, notes = _extracted(concrete, request, batch_size)
            if not _anything_to_gain(extracted.graph):
                return None
            structure = _structure(extracted.graph)
            run = request.trial_run and request.budget.share is not None
            resident = _resident(extracted.graph, arriving)
            baseline = self._baselines.of(extracted, structure, resident, run)
            counted_from = self._baselines.counted_from(baseline)
            situation = _situation(extracted, request, notes, baseline, counted_from)
            known = self._known.get(structure)
            if known is not None and known.fits(situation):
                plan = replace(known.plan, graph=extracted.graph, budget=situation.budget)
                return PlannedStep(plan, extracted, None)
            is_smaller = self._baselines.is_smaller(baseline)
            planned = _planned(situation, request, interrupts, is_smaller)
            self._baselines.note(baseline)
            interrupts.pass_on()
            self._remember(planned, situation)
            return planned

    def leaner(
        self, concrete: Any, batch_size: int | None, budget: int, margin: int
    ) -> PlannedStep:
        """As `plan`, within `budget` bytes of which `margin` bytes are left alone."""
        request = replace(self._request, budget=Budget(bytes=budget), on_infeasible="error")
        with self._lock, apart(), noted_interrupts() as interrupts:
            extracted, notes = _extracted(concrete, request, batch_size)
            structure = _structure(extracted.graph)
            resident = _resident(extracted.graph)
            baseline = self._baselines.of(extracted, structure, resident, run=False)
            situation = _situation(extracted, request, notes, baseline, baseline.peak)
            situation = replace(situation, margin=margin)
            planned = _planned(situation, request, interrupts, is_smaller=False)
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
        here = replace(request, trial_run=False)
        planned = _planned(situation, here, interrupts, is_smaller=False)
        interrupts.pass_on()
        return planned


def _extracted(
    concrete: Any, request: Request, batch_size: int | None
) -> tuple[Extraction, tuple[str, ...]]:
    """The step's graph and what the user should know of it."""
    program = resolve(concrete, batch_size)
    _refuse_several_devices(program)
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
    situation: Situation, request: Request, interrupts: Interrupts, is_smaller: bool
) -> PlannedStep:
    extracted = situation.extracted
    with_trial_run = request.trial_run and can_run_for_trial(extracted)
    search = PlanSearch(
        situation,
        request.solver,
        request.order,
        request.time_limit,
        partial(run_for_trial, extracted) if with_trial_run else None,
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


def _refuse_several_devices(program: Program) -> None:
    """One order for the operations of all replicas would let collectives wait for ever."""
    devices = {tf.DeviceSpec.from_string(op.device) for op in program.operations if op.device}
    per_kind = Counter(each.device_type for each in devices if each.device_index is not None)
    together = [op for op in program.operations if op.type.startswith(_COLLECTIVES)]
    if max(per_kind.values(), default=0) > 1 or together:
        names = sorted({f"{each.device_type}:{each.device_index}" for each in devices})
        raise CheckmateError(
            f"the step runs on several devices ({', '.join(names)}), which can't be put into one "
            "order: rematerialize what every replica runs, the function that strategy.run is "
            "given"
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
