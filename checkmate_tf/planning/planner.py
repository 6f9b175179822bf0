"""From a traced step and a budget to a plan whose measured peak is within the budget."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.layout import MemoryLayout
from checkmate_tf.distribution.emission import ReplicatedStep
from checkmate_tf.distribution.split import has_several_replicas
from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.interrupts import Interrupts, noted_interrupts
from checkmate_tf.phases import phase, seconds_so_far
from checkmate_tf.planning.apart import apart
from checkmate_tf.planning.baseline import Baseline, Baselines
from checkmate_tf.planning.kept.kept_plan import KeptPlan
from checkmate_tf.planning.kept.kept_plans import KeptPlans
from checkmate_tf.planning.origins import with_origin
from checkmate_tf.planning.plan_search import PlanSearch
from checkmate_tf.planning.preparation import (
    anything_to_gain,
    layout_for,
    prepared,
    resident_bytes,
    structure_of,
)
from checkmate_tf.planning.replicas import Replica, plan_replicas
from checkmate_tf.planning.request import Request
from checkmate_tf.planning.settings import PATIENCE
from checkmate_tf.planning.situation import Situation
from checkmate_tf.planning.too_small import TooSmallError
from checkmate_tf.planning.trial.trial_run import (
    SaysEnough,
    TrialRun,
    TrialRunError,
    TrialRunner,
    can_run_for_trial,
    run_for_trial,
    warm_up,
    why_no_trial,
)
from checkmate_tf.planning.variable_places import variables_movable
from checkmate_tf.plans.plan import Plan
from checkmate_tf.trace.program import Program, resolve
from checkmate_tf.trace.sizes import ArgumentSizes
from checkmate_tf.user_warnings import warn_user
from solvers import Budget, BudgetError, ComputationGraph, Schedule, find_solver, format_bytes
from solvers.local_search.compiling_ahead import begin_to_compile


@dataclass(frozen=True)
class PlannedStep:
    """A plan, the extraction that it belongs to, and the function that ran for trial, if any.

    Attributes:
        beyond_budget: the plan is the leanest one, and known to need more than the budget.
        keeps: whether it is expected to stay within the budget.
        untried: its trial run failed for a reason that may pass.
        replicated: the whole step, where several replicas run it; the plan is for one of them.
        source: where the plan comes from, or what became of it, for the user; "" if it is of a step
            that has been planned before and was traced again.
        runs_plain: the step runs as it is, which takes as little as any plan, or fits.
        is_cold: it has not run yet, and its first run may hold more, in which kernels are chosen.
    """

    plan: Plan
    extracted: Extraction
    function: Callable[..., Any] | None
    beyond_budget: bool = False
    keeps: bool = True
    untried: bool = False
    replicated: ReplicatedStep | None = None
    source: str = ""
    runs_plain: bool = False
    is_cold: bool = False


class Planner:
    """Makes the plans of one decorated step, for every signature that it is called with.

    A plan belongs to a graph: a step that is traced again and differs in its constants alone
    keeps the plan.
    """

    def __init__(self, request: Request) -> None:
        if "starts" in find_solver(request.solver).options:  # it is the search, or contains it
            begin_to_compile()
        self._request = request
        self._known: dict[ComputationGraph, KeptPlan] = {}
        self._fixed: dict[ComputationGraph, int] = {}  # budgets in bytes, once training has begun
        self._baselines = Baselines()
        self._kept = KeptPlans(request)
        quietly = replace(request, plan=None, verbose=0)
        self._named_in_errors = KeptPlans(quietly, "named in an error")
        self._lock = threading.RLock()

    def plan(
        self,
        concrete: Any,
        sizes: ArgumentSizes | None,
        arriving: int | None = None,
        batches: int = 1,
    ) -> PlannedStep | None:
        """Plan the step `concrete`; None if nothing in it can be recomputed.

        Args:
            concrete: the traced step.
            sizes: of inputs that were traced without them, as for `resolve`.
            arriving: bytes that the device will hold before the step and does not hold yet; by
                default those of `batches`.
            batches: how many will come from `fit`.

        Raises:
            BudgetError: no schedule was found within the budget. Where a signature that needs as
                much has been planned, so that training is under way, and where the request says
                "min", this is a warning.
            CheckmateError: sizes are unknown, or the worker that plans for all failed.
        """
        request = self._request
        with self._lock, apart(), self._variables(concrete), noted_interrupts() as interrupts:
            with phase("extract"):
                program = resolve(concrete, sizes)
            if has_several_replicas(program):
                return self._plan_replicas(program, interrupts)
            extracted, notes = self._extracted(program, request)
            if not anything_to_gain(extracted.graph):
                return None
            if arriving is None:
                arriving = program.argument_bytes * batches
            resident = resident_bytes(extracted.graph, arriving + program.constant_bytes)
            run = partial(trial_runner, extracted, arriving)
            warm = partial(warmed, arriving=arriving, may_run=request.trial_run)
            lay_out = partial(layout_for, extracted, arriving)
            return self._known_or_planned(
                extracted, notes, resident, run, interrupts, lay_out=lay_out, warm=warm
            )

    def _known_or_planned(
        self,
        extracted: Extraction,
        notes: tuple[str, ...],
        resident: int,
        run: Callable[[], TrialRunner | None],
        interrupts: Interrupts,
        exchange_peak: int = 0,
        lay_out: Callable[[], MemoryLayout | None] = lambda: None,
        warm: Callable[[PlannedStep], PlannedStep] = lambda planned: planned,
    ) -> PlannedStep:
        """A plan for what the device holds.

        Args:
            extracted, notes: the step, and what the user should know of it.
            resident: bytes that the device holds before it.
            run: tells what runs it for trial, if anything does; called only if it is to run.
            interrupts: those of the user.
            exchange_peak: bytes that are needed in any case.
            lay_out: tells how the device's memory lies; called only if a plan is made.
            warm: runs a step by a plan that was made before, as far as that is of use.
        """
        request, structure = self._request, structure_of(extracted.graph)
        kept = self._kept.find(extracted.program)
        if kept is not None and kept.baseline is not None:
            self._baselines.know(structure, kept.baseline, kept.baseline_ran)
        elif request.trial_run:
            measured = self._kept.baseline(extracted.program)
            if measured is not None:
                self._baselines.know(structure, measured, ran=True)
        # What several replicas do together can't run for one of them.
        may_run = request.trial_run and request.budget.share is not None and not exchange_peak
        baseline = self._baselines.of(extracted, structure, resident, may_run)
        if exchange_peak > baseline.forecast:
            baseline = replace(baseline, forecast=exchange_peak)
        counted_from = self._baselines.counted_from(baseline)
        situation = situation_of(extracted, request, notes, baseline, counted_from)
        situation = replace(situation, budget=self._fixed.get(structure, situation.budget))
        known = self._known.get(structure)
        if known is not None and not known.why_not(situation, request.budget.least):
            return taken(known, situation, request, source="")
        if kept is not None and self._kept.judge(kept, situation):
            planned = warm(_found_again(kept, situation, request))
            self._baselines.note(baseline)
            self._remember(planned)
            return planned
        under_way = self._baselines.is_no_larger(baseline)
        situation = replace(situation, layout=lay_out())
        recommended = self._recommended(extracted.program) if kept is None else None
        may_measure = request.trial_run and not exchange_peak
        try:
            planned = _planned(
                situation,
                request,
                run(),
                interrupts,
                under_way,
                recommended,
                partial(self._unchanged_peak, extracted, resident) if may_measure else lambda: None,
            )
        except TooSmallError as error:
            self._keep_recommended(error, situation)
            raise
        self._baselines.note(baseline)
        interrupts.pass_on()
        planned = self._keep(planned, situation, baseline)
        self._remember(planned)
        return planned

    def _keep(self, planned: PlannedStep, situation: Situation, baseline: Baseline) -> PlannedStep:
        """The planned step, its plan with what it was made for, and kept for the next time."""
        made = self._made(planned, situation, baseline)
        planned = replace(planned, plan=made.plan, source="plan not kept")
        is_asked_for = self._request.on_infeasible == "min" or planned.runs_plain
        if planned.beyond_budget and not is_asked_for:
            return planned  # only because training was under way
        source = self._kept.keep(made)
        return replace(planned, source=source or "plan not kept")

    def _made(self, planned: PlannedStep, situation: Situation, baseline: Baseline) -> KeptPlan:
        device = current_device().full_name
        return KeptPlan(
            with_origin(planned.plan, planned.extracted, situation.resident, device),
            planned.keeps,
            planned.beyond_budget,
            planned.runs_plain,
            baseline,
            planned.untried or baseline.may_pass,
        )

    def _unchanged_peak(self, extracted: Extraction, resident: int) -> int | None:
        """Bytes that the unchanged step is measured to need; None where it can't be."""
        structure = structure_of(extracted.graph)
        return self._baselines.of(extracted, structure, resident, run=True).measured

    def _recommended(self, program: Program) -> Schedule | None:
        """The schedule of a plan whose budget an error has named, maybe of an earlier process."""
        kept = self._named_in_errors.find(program)
        return None if kept is None else kept.plan.schedule

    def _keep_recommended(self, error: TooSmallError, situation: Situation) -> None:
        """Let the next one who asks find the plan whose budget the error names."""
        if error.leanest is None or error.least is None:
            return
        extracted = situation.extracted
        structure = structure_of(extracted.graph)
        baseline = self._baselines.of(extracted, structure, situation.resident, run=False)
        plan = replace(error.leanest.plan, budget=error.least)
        step = PlannedStep(plan, extracted, None)
        self._named_in_errors.keep(self._made(step, situation, baseline))

    def forget(self, planned: PlannedStep) -> None:
        """A step was over its budget: other processes are not to take its plan."""
        self._kept.forget(planned.extracted.program)

    def _plan_replicas(self, program: Program, interrupts: Interrupts) -> PlannedStep | None:
        """Plan a step that several replicas run, with a budget for each."""
        request = self._request

        sources = ["plan of the first worker"]

        def plan_one(replica: Replica) -> Plan:
            resident = max(replica.extracted.graph.fixed_bytes, replica.held or 0)
            planned = self._known_or_planned(
                replica.extracted,
                replica.notes,
                resident,
                lambda: replica.run_for_trial,
                interrupts,
                replica.exchange_peak,
            )
            sources[:] = [planned.source]
            return planned.plan

        patience = PATIENCE * request.time_limit
        extract = partial(self._extracted, request=request)
        planned = plan_replicas(program, extract, plan_one, anything_to_gain, patience)
        if planned is None:
            return None
        step, plan = planned
        return PlannedStep(plan, step.replicas[0], None, replicated=step, source=sources[0])

    def leaner(
        self, concrete: Any, sizes: ArgumentSizes | None, budget: int, margin: int, arriving: int
    ) -> PlannedStep:
        """As `plan`, within `budget` bytes of which `margin` bytes are left alone."""
        request = replace(self._request, budget=Budget(bytes=budget), on_infeasible="error")
        with self._lock, apart(), self._variables(concrete), noted_interrupts() as interrupts:
            with phase("extract"):
                program = resolve(concrete, sizes)
            extracted, notes = self._extracted(program, request)
            self._kept.forget(program)
            structure = structure_of(extracted.graph)
            self._fixed[structure] = budget
            resident = resident_bytes(extracted.graph, arriving)
            baseline = self._baselines.of(extracted, structure, resident, run=False)
            situation = situation_of(extracted, request, notes, baseline, baseline.peak)
            layout = layout_for(extracted, arriving)
            situation = replace(situation, margin=margin, layout=layout)
            run = trial_runner(extracted, arriving)
            planned = _planned(situation, request, run, interrupts, under_way=False)
            interrupts.pass_on()
            planned = self._keep(planned, situation, baseline)
            self._remember(planned)
            return planned

    def _variables(self, concrete: Any) -> AbstractContextManager[None]:
        """Those of the step may be moved before its first plan: later, it trains."""
        return variables_movable(None if self._known else concrete)

    def _extracted(self, program: Program, request: Request) -> tuple[Extraction, tuple[str, ...]]:
        """The step's graph and what the user should know of it."""
        with phase("extract"):
            return prepared(program, request, self._kept.workspaces(program))

    def _remember(self, planned: PlannedStep) -> None:
        key = structure_of(planned.extracted.graph)
        self._known[key] = KeptPlan(
            planned.plan, planned.keeps, planned.beyond_budget, planned.runs_plain
        )


def plan_elsewhere(extracted: Extraction, request: Request, notes: tuple[str, ...]) -> PlannedStep:
    """Plan for a device that holds nothing but the step; nothing runs here.

    Raises:
        BudgetError: no schedule was found within the budget.
    """
    with noted_interrupts() as interrupts:
        graph = extracted.graph
        baseline = Baselines().of(extracted, structure_of(graph), graph.fixed_bytes, run=False)
        situation = situation_of(extracted, request, notes, baseline, baseline.peak)
        planned = _planned(situation, request, None, interrupts, under_way=False)
        interrupts.pass_on()
        plan = with_origin(planned.plan, extracted, graph.fixed_bytes, "another device")
        return replace(planned, plan=plan)


def _planned(
    situation: Situation,
    request: Request,
    run: TrialRunner | None,
    interrupts: Interrupts,
    under_way: bool,
    recommended: Schedule | None = None,
    measure_unchanged: Callable[[], int | None] = lambda: None,
) -> PlannedStep:
    failed: list[TrialRunError] = []
    search = PlanSearch(
        situation,
        request.solver,
        request.order,
        request.time_limit,
        partial(_noting, failed, run) if run is not None and request.trial_run else None,
        interrupts,
        recommended,
        measure_unchanged,
    )
    beyond_budget = False
    try:
        with phase("solve"):
            found = search.leanest() if request.budget.least else search.run()
    except BudgetError as error:
        if request.on_infeasible != "min" and not under_way:
            raise
        with phase("solve"):
            found = search.leanest(solver="auto")
        why = "training is under way, so " if under_way else ""
        need = format_bytes(found.plan.budget, situation.budget)
        note = f"{error}; {why}the leanest plan found runs, which may need {need}"
        warn_user("leanest-plan-runs", note)
        plan = replace(found.plan, budget=situation.budget, notes=(*found.plan.notes, note))
        found = replace(found, plan=plan, keeps=False)
        beyond_budget = True
    why = _why_forecast(found.plan, situation, request, failed)
    return PlannedStep(
        replace(found.plan, why_forecast=why),
        situation.extracted,
        found.function,
        beyond_budget=beyond_budget or (found.runs_plain and not found.keeps),
        keeps=found.keeps,
        runs_plain=found.runs_plain,
        untried=found.plan.measured_peak is None and any(each.may_pass for each in failed),
        is_cold=current_device().tries_kernels and found.plan.measured_peak is None,
    )


def _why_forecast(
    plan: Plan, situation: Situation, request: Request, failed: Sequence[TrialRunError]
) -> str:
    """Why no trial run has measured the plan, in a few words; "" where one has."""
    if plan.measured_peak is not None:
        return ""
    if not request.trial_run:
        return "trial_run=False"
    return str(failed[-1]) if failed else why_no_trial(situation.extracted)


def _noting(
    failed: list[TrialRunError], run: TrialRunner, schedule: Schedule, says_enough: SaysEnough
) -> TrialRun | None:
    """A trial run; if it fails, the reason is noted."""
    try:
        return run(schedule, says_enough)
    except TrialRunError as error:
        failed.append(error)
        raise


def _found_again(kept: KeptPlan, situation: Situation, request: Request) -> PlannedStep:
    """The step by a plan that was named, or made by an earlier process."""
    if not kept.keeps and kept.plan.notes:
        warn_user("kept-plan-over-budget", kept.plan.notes[-1])  # as when it was made
    where = "by the plan that was named" if kept.path is None else "by a plan kept before"
    planned = taken(kept, situation, request, where)
    return replace(planned, plan=replace(planned.plan, seconds=seconds_so_far()))


def warmed(planned: PlannedStep, arriving: int, may_run: bool) -> PlannedStep:
    """The step by a plan that was made before, after it ran where the first run holds more.

    Args:
        planned: the step and its plan.
        arriving: bytes of its arguments that are not on the device yet.
        may_run: it may run for trial.
    """
    run = warm_up(planned.extracted, planned.plan.schedule, arriving) if may_run else None
    if run is None:
        return replace(planned, is_cold=current_device().tries_kernels)
    return replace(planned, plan=replace(planned.plan, first_peak=run.first), function=run.function)


def taken(kept: KeptPlan, situation: Situation, request: Request, source: str) -> PlannedStep:
    """The step by a plan that was made before."""
    extracted = situation.extracted
    budget = kept.plan.budget if request.budget.least else situation.budget
    return PlannedStep(
        kept.at(extracted.graph, budget),
        extracted,
        None,
        beyond_budget=kept.beyond_budget,
        keeps=kept.keeps,
        runs_plain=kept.runs_plain,
        source=source,
    )


def trial_runner(extracted: Extraction, arriving: int) -> TrialRunner | None:
    """What runs the step for trial by a schedule; None where that is not possible.

    Of the step's arguments `arriving` bytes are not on the device yet.
    """
    if not can_run_for_trial(extracted):
        return None
    return partial(run_for_trial, extracted, arriving=arriving)


def situation_of(
    extracted: Extraction,
    request: Request,
    notes: tuple[str, ...],
    baseline: Baseline,
    counted_from: int,
) -> Situation:
    """What there is before planning; a share counts from so many bytes."""
    resident, budget = baseline.resident, request.budget
    before = resident - extracted.program.constant_bytes  # a step makes those, too
    return Situation(
        extracted=extracted,
        resident=resident,
        budget=resident if budget.least else budget.in_bytes(before, counted_from),
        margin=0,
        baseline_peak=baseline.forecast,
        notes=(*notes, baseline.note) if baseline.note else notes,
        measured_baseline_peak=baseline.measured,
    )
