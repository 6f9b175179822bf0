"""From a traced step and a budget to a plan whose measured peak is within the budget."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.layout import MemoryLayout
from checkmate_tf.distribution.split import has_several_replicas
from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.interrupts import Interrupts
from checkmate_tf.phases import phase, seconds_so_far
from checkmate_tf.planning.baseline import Baseline, Baselines
from checkmate_tf.planning.device_budget import (
    fits_clearly,
    for_device,
    unchanged_where_it_fits,
)
from checkmate_tf.planning.kept.kept_plan import KeptPlan
from checkmate_tf.planning.kept.kept_plans import KeptPlans
from checkmate_tf.planning.origins import with_origin
from checkmate_tf.planning.outcome import Outcome
from checkmate_tf.planning.plan_search import PlanSearch
from checkmate_tf.planning.preparation import (
    PreparedStep,
    anything_to_gain,
    begun,
    planning_of,
    prepared,
    resolved,
    structure_of,
)
from checkmate_tf.planning.question import Question
from checkmate_tf.planning.replicas import Replica, plan_replicas
from checkmate_tf.planning.request import Request
from checkmate_tf.planning.settings import PATIENCE
from checkmate_tf.planning.step_times import StepTimes
from checkmate_tf.planning.too_small import TooSmallError, leanest_instead
from checkmate_tf.planning.trial.trial_run import (
    SaysEnough,
    TrialRun,
    TrialRunError,
    TrialRunner,
    warm_up,
    why_no_trial,
)
from checkmate_tf.plans.plan import Plan
from checkmate_tf.trace.program import Program
from checkmate_tf.trace.sizes import ArgumentSizes
from checkmate_tf.user_warnings import warn_user
from solvers import Budget, BudgetError, ComputationGraph, Schedule, find_solver, format_bytes
from solvers.local_search.compiling_ahead import begin_to_compile


@dataclass(frozen=True)
class _OfReplica(PreparedStep):
    """What one of several replicas computes by itself; see `replicas.Replica`."""

    replica: Replica | None = None

    @property
    def exchange_peak(self) -> int:
        return self.replica.exchange_peak if self.replica else 0

    def runner(self) -> TrialRunner | None:
        return self.replica.run_for_trial if self.replica else None

    def layout(self) -> MemoryLayout | None:
        return None

    def times(self, baseline: Baseline, ran_here: bool) -> StepTimes:
        return StepTimes(baseline, ran_here)


class Planner:
    """Makes the plans of one decorated step, for every signature that it is called with.

    A plan belongs to a graph: a step that is traced again and differs in its constants alone
    keeps the plan.
    """

    def __init__(self, request: Request, kept_for: Request | None = None) -> None:
        """Nothing is planned yet.

        Args:
            request: what the user asked for.
            kept_for: the request by which its plans are found again, where that is another one.
        """
        if "starts" in find_solver(request.solver).options:  # it is the search, or contains it
            begin_to_compile()
        self._request = request
        self._known: dict[ComputationGraph, KeptPlan] = {}
        self._fixed: dict[ComputationGraph, int] = {}  # budgets in bytes, once training has begun
        self._baselines = Baselines()
        self._kept = KeptPlans(kept_for or request)
        quietly = replace(request, plan=None, verbose=0)
        self._named_in_errors = KeptPlans(quietly, "named in an error")
        self._lock = threading.RLock()

    def plan(
        self,
        concrete: Any,
        sizes: ArgumentSizes | None,
        arriving: int | None = None,
        batches: int = 1,
        trains: bool = True,
    ) -> Outcome | None:
        """Plan the step `concrete`; None if nothing in it can be recomputed.

        Args:
            concrete: the traced step.
            sizes: of inputs that were traced without them, as for `resolve`.
            arriving: bytes that the device will hold before the step and does not hold yet; by
                default those of `batches`.
            batches: how many will come from `fit`.
            trains: a step may train by what was planned before: nothing of it may be moved.

        Raises:
            BudgetError: no schedule was found within the budget. Where a signature that needs as
                much has been planned, so that training is under way, and where the request says
                "min", this is a warning.
            CheckmateError: sizes are unknown, or the worker that plans for all failed.
        """
        with self._lock, planning_of(None if trains and self._known else concrete) as interrupts:
            request = for_device(self._request, current_device())
            program = resolved(concrete, sizes)
            if has_several_replicas(program):
                return self._plan_replicas(program, request, interrupts)
            coming = program.argument_bytes * batches if arriving is None else arriving
            step = self._begun(program, request, coming)
            return self._known_or_planned(step, request, interrupts) if step.has_gain else None

    def _known_or_planned(
        self, step: PreparedStep, request: Request, interrupts: Interrupts
    ) -> Outcome:
        """A plan for what the device holds."""
        structure = step.structure
        kept = self._kept.find(step.program)
        if kept is not None and kept.baseline is not None:
            self._baselines.know(structure, kept.baseline, kept.baseline_ran)
        elif request.trial_run:
            measured = self._kept.baseline(step.program)
            if measured is not None:
                self._baselines.know(structure, measured, ran=True)
        # What several replicas do together can't run for one of them.
        may_run = request.trial_run and not step.exchange_peak
        counts_a_share = request.budget.share is not None
        baseline = self._baselines.of(step, may_run and counts_a_share)
        if step.exchange_peak > baseline.forecast:
            baseline = replace(baseline, forecast=step.exchange_peak)
        question = step.question(request, baseline, self._baselines.counted_from(baseline))
        question = replace(question, budget=self._fixed.get(structure, question.budget))
        known = self._known.get(structure)
        if known is not None and not known.why_not(question, request.budget.least):
            return taken(known, question, request, source="")
        if kept is not None and self._kept.judge(kept, question):
            found = _found_again(kept, question, request)
            if not step.exchange_peak:
                found = warmed(found, step.arriving, request.trial_run)
            self._baselines.note(baseline)
            self._remember(found)
            return found
        if request.budget_from and baseline.forecast <= question.limit:
            if may_run and not fits_clearly(question):
                baseline = self._baselines.of(step, run=True)
            unchanged = unchanged_where_it_fits(question, baseline)
            if unchanged is not None:
                self._baselines.note(baseline)
                return self._keep(unchanged, step, baseline)
        under_way = self._baselines.is_no_larger(baseline)
        question = replace(question, layout=step.layout())
        recommended = self._recommended(step.program) if kept is None else None

        def unchanged_peak() -> int | None:
            return self._baselines.of(step, run=True).measured if may_run else None

        try:
            found = answered(
                question,
                request,
                step.runner(),
                interrupts,
                under_way,
                recommended,
                unchanged_peak,
                step.times(baseline, self._baselines.ran_here(step)),
            )
        except TooSmallError as error:
            self._keep_recommended(error, step)
            raise
        self._baselines.note(baseline)
        interrupts.pass_on()
        return self._keep(found, step, baseline)

    def _keep(self, found: Outcome, step: PreparedStep, baseline: Baseline) -> Outcome:
        """The outcome, its plan with what it was made for, and kept for the next time."""
        made = self._made(found, step, baseline)
        found = replace(found, plan=made.plan, source="plan not kept")
        is_asked_for = self._request.on_infeasible == "min" or found.runs_plain
        if is_asked_for or not found.beyond_budget:  # else only because training was under way
            found = replace(found, source=self._kept.keep(made) or "plan not kept")
        self._remember(found)
        return found

    def _made(self, found: Outcome, step: PreparedStep, baseline: Baseline) -> KeptPlan:
        return KeptPlan(
            with_origin(found.plan, found.extracted, step.resident, step.device.full_name),
            found.keeps,
            found.beyond_budget,
            found.runs_plain,
            baseline,
            found.untried or baseline.may_pass,
        )

    def _recommended(self, program: Program) -> Schedule | None:
        """The schedule of a plan whose budget an error has named, maybe of an earlier process."""
        kept = self._named_in_errors.find(program)
        return None if kept is None else kept.plan.schedule

    def _keep_recommended(self, error: TooSmallError, step: PreparedStep) -> None:
        """Let the next one who asks find the plan whose budget the error names."""
        if error.leanest is None or error.least is None:
            return
        baseline = self._baselines.of(step, run=False)
        leanest = Outcome(replace(error.leanest.plan, budget=error.least), step.extracted)
        self._named_in_errors.keep(self._made(leanest, step, baseline))

    def forget(self, planned: Outcome) -> None:
        """A step was over its budget: other processes are not to take its plan."""
        self._kept.forget(planned.extracted.program)

    def _plan_replicas(
        self, program: Program, request: Request, interrupts: Interrupts
    ) -> Outcome | None:
        """Plan a step that several replicas run, with a budget for each."""
        device = current_device()
        sources = ["plan of the first worker"]

        def plan_one(replica: Replica) -> Plan:
            resident = max(replica.extracted.graph.fixed_bytes, replica.held or 0)
            step = _OfReplica(
                replica.extracted, device, replica.notes, 0, resident, replica=replica
            )
            planned = self._known_or_planned(step, request, interrupts)
            sources[:] = [planned.source]
            return planned.plan

        def extract(part: Program) -> tuple[Extraction, tuple[str, ...]]:
            with phase("extract"):
                return prepared(part, request, device, self._kept.workspaces(part))

        patience = PATIENCE * request.time_limit
        planned = plan_replicas(program, extract, plan_one, anything_to_gain, patience)
        if planned is None:
            return None
        step, plan = planned
        return Outcome(plan, step.replicas[0], replicated=step, source=sources[0])

    def leaner(
        self,
        concrete: Any,
        sizes: ArgumentSizes | None,
        budget: int,
        margin: int,
        arriving: int,
        exhausted: Outcome | None = None,
    ) -> Outcome:
        """As `plan`, within `budget` bytes of which `margin` bytes are left alone.

        Where none is found instead of a plan by which the step has `exhausted` the device's memory,
        the leanest is taken, if it takes less.
        """
        request = replace(self._request, budget=Budget(bytes=budget), on_infeasible="error")
        with self._lock, planning_of(None) as interrupts:
            step = self._begun(resolved(concrete, sizes), request, arriving, has_run=True)
            self._kept.forget(step.program)
            self._fixed[step.structure] = budget
            baseline = self._baselines.of(step, run=False)
            question = step.question(request, baseline, baseline.peak)
            question = replace(question, margin=margin, layout=step.layout())
            try:
                found = answered(question, request, step.runner(), interrupts)
            except TooSmallError as error:
                if exhausted is None:
                    raise
                found = leanest_instead(error, exhausted, question)
            interrupts.pass_on()
            return self._keep(found, step, baseline)

    def _begun(
        self, program: Program, request: Request, arriving: int, has_run: bool = False
    ) -> PreparedStep:
        with phase("extract"):
            workspaces = self._kept.workspaces(program)
        return begun(program, request, current_device(), arriving, workspaces, has_run)

    def _remember(self, found: Outcome) -> None:
        self._known[structure_of(found.extracted.graph)] = KeptPlan(
            found.plan, found.keeps, found.beyond_budget, found.runs_plain
        )


def plan_elsewhere(step: PreparedStep, request: Request) -> Outcome:
    """Plan for a device that holds nothing but the step; nothing runs here.

    Raises:
        BudgetError: no schedule was found within the budget.
    """
    with planning_of(None) as interrupts:
        baseline = Baselines().of(step, run=False)
        question = step.question(request, baseline, baseline.peak)
        found = answered(question, request, None, interrupts)
        interrupts.pass_on()
        origin = step.resident, step.device.full_name
        return replace(found, plan=with_origin(found.plan, step.extracted, *origin))


def answered(
    question: Question,
    request: Request,
    run: TrialRunner | None,
    interrupts: Interrupts,
    under_way: bool = False,
    recommended: Schedule | None = None,
    measure_unchanged: Callable[[], int | None] = lambda: None,
    times: StepTimes | None = None,
) -> Outcome:
    """What a search finds for a question.

    Args:
        question: it.
        request: what the user asked for.
        run: runs the step for trial, if anything does.
        interrupts: those of the user.
        under_way: a signature that needs as much has been planned before.
        recommended, measure_unchanged, times: as for `PlanSearch`.

    Raises:
        BudgetError: no schedule was found within the budget, and that is an error.
    """
    failed: list[TrialRunError] = []
    search = PlanSearch(
        question,
        request.solver,
        request.order,
        request.time_limit,
        partial(_noting, failed, run) if run is not None and request.trial_run else None,
        interrupts,
        recommended,
        measure_unchanged,
        times,
    )
    try:
        with phase("solve"):
            found = search.leanest() if request.budget.least else search.run()
    except BudgetError as error:
        if request.on_infeasible != "min" and not under_way:
            raise
        with phase("solve"):
            found = search.leanest(solver="auto")
        why = "training is under way, so " if under_way else ""
        need = format_bytes(found.plan.budget, question.budget)
        note = f"{error}; {why}the leanest plan found runs, which may need {need}"
        warn_user("leanest-plan-runs", note)
        plan = replace(found.plan, budget=question.budget, notes=(*found.plan.notes, note))
        found = replace(found, plan=plan, keeps=False, beyond_budget=True)
    was_tried = found.plan.measured_peak is not None
    why = _why_forecast(found.plan, question, request, failed)
    return replace(
        found,
        plan=replace(found.plan, why_forecast=why),
        beyond_budget=found.beyond_budget or (found.runs_plain and not found.keeps),
        untried=not was_tried and any(each.may_pass for each in failed),
        is_cold=question.device.tries_kernels and not was_tried,
    )


def _why_forecast(
    plan: Plan, question: Question, request: Request, failed: Sequence[TrialRunError]
) -> str:
    """Why no trial run has measured the plan, in a few words; "" where one has."""
    if plan.measured_peak is not None:
        return ""
    if not request.trial_run:
        return "trial_run=False"
    return str(failed[-1]) if failed else why_no_trial(question.extracted)


def _noting(
    failed: list[TrialRunError], run: TrialRunner, schedule: Schedule, says_enough: SaysEnough
) -> TrialRun | None:
    """A trial run; if it fails, the reason is noted."""
    try:
        return run(schedule, says_enough)
    except TrialRunError as error:
        failed.append(error)
        raise


def _found_again(kept: KeptPlan, question: Question, request: Request) -> Outcome:
    """The step by a plan that was named, or made by an earlier process."""
    if not kept.keeps and kept.plan.notes:
        warn_user("kept-plan-over-budget", kept.plan.notes[-1])  # as when it was made
    where = "by the plan that was named" if kept.path is None else "by a plan kept before"
    planned = taken(kept, question, request, where)
    return replace(planned, plan=replace(planned.plan, seconds=seconds_so_far()))


def warmed(planned: Outcome, arriving: int, may_run: bool) -> Outcome:
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


def taken(kept: KeptPlan, question: Question, request: Request, source: str) -> Outcome:
    """The step by a plan that was made before."""
    extracted = question.extracted
    budget = kept.plan.budget if request.budget.least else question.budget
    return Outcome(
        replace(kept.at(extracted.graph, budget), budget_from=question.budget_from),
        extracted,
        beyond_budget=kept.beyond_budget,
        keeps=kept.keeps,
        runs_plain=kept.runs_plain,
        source=source,
    )
