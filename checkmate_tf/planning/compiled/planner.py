"""Which plan a step gets that XLA compiles, and when one is made."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

from checkmate_tf.devices.allocator import MOST_WASTE
from checkmate_tf.devices.current import current_device
from checkmate_tf.distribution.split import has_several_replicas
from checkmate_tf.interrupts import Interrupts
from checkmate_tf.phases import phase, seconds_so_far
from checkmate_tf.planning.apart import apart
from checkmate_tf.planning.baseline import Baseline
from checkmate_tf.planning.compiled.search import CompiledSearch, compiled_bytes
from checkmate_tf.planning.device_budget import for_device
from checkmate_tf.planning.kept.kept_plan import KeptPlan
from checkmate_tf.planning.kept.kept_plans import KeptPlans
from checkmate_tf.planning.kept.step_content import step_content
from checkmate_tf.planning.origins import with_origin
from checkmate_tf.planning.outcome import Outcome
from checkmate_tf.planning.planner import taken
from checkmate_tf.planning.preparation import (
    PreparedStep,
    begun,
    planning_of,
    resolved,
)
from checkmate_tf.planning.question import Question
from checkmate_tf.planning.request import Request
from checkmate_tf.planning.too_small import TooSmallError, leanest_instead
from checkmate_tf.plans.plan import Plan
from checkmate_tf.program.max_pool_gradient import windows_of
from checkmate_tf.trace.inlining import as_traced
from checkmate_tf.trace.inputs import captures
from checkmate_tf.trace.nested import inner_workspaces
from checkmate_tf.trace.program import Program
from checkmate_tf.trace.sizes import ArgumentSizes
from checkmate_tf.user_warnings import warn_user
from profiles.measure.compilation import CompiledMemory
from profiles.measure.compiled_workspaces import CompiledWorkspaces, compiler_name
from solvers import BudgetError, CheckmateError, ComputationGraph, Schedule

_WORKSPACES: dict[str, CompiledWorkspaces] = {}
"""By XLA's name for a device: workspaces of compiled operations that this process knows."""


@dataclass(frozen=True)
class _Unchanged:
    """The step as it is, compiled.

    Attributes:
        added: bytes that a run takes beside its arguments.
        workspaces: of each of its operations, in bytes.
        notes: what the user should know of them.
        is_recomputed: XLA recomputes some values by itself, or it would take more.
    """

    added: int
    workspaces: tuple[int, ...]
    notes: tuple[str, ...] = ()
    is_recomputed: bool = False


class CompiledPlanner:
    """Makes the plans of one decorated step where XLA compiles it."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._known: dict[ComputationGraph, KeptPlan] = {}
        self._unchanged: dict[str, _Unchanged] = {}  # by the content of the step
        self._kept = KeptPlans(request, compiled=True)
        self._largest = 0  # bytes that the plain step adds, of the largest signature so far
        # Once training has begun: budgets in bytes, and bytes of them that plans leave alone.
        self._fixed: dict[ComputationGraph, tuple[int, int]] = {}
        self._lock = threading.RLock()

    def plan(
        self,
        concrete: Any,
        sizes: ArgumentSizes | None,
        arriving: int | None = 0,
        batches: int = 1,
        begin_with: Schedule | None = None,
    ) -> Outcome | None:
        """Plan the step `concrete`; None if nothing in it can be recomputed.

        Args:
            concrete: the step, traced for XLA.
            sizes: of inputs that were traced without them, as for `resolve`.
            arriving: bytes that the device will hold before the step and does not hold yet; None
                for those of `batches`.
            batches: how many will come from `fit`.
            begin_with: a schedule of the same step for batches of another size, which is compiled
                first, and taken if it keeps the budget.

        Raises:
            BudgetError: no plan keeps the budget.
            CheckmateError: sizes are unknown, several replicas run the step, or it can't be
                compiled by itself.
        """
        with self._lock, planning_of(None) as interrupts:
            step, unchanged = self._begun(concrete, sizes, arriving, batches)
            interrupts.pass_on()
            if not step.has_gain:
                return None
            return self._known_or_planned(step, unchanged, interrupts, begin_with)

    def search(
        self,
        concrete: Any,
        sizes: ArgumentSizes | None,
        arriving: int | None,
        interrupts: Interrupts,
    ) -> CompiledSearch:
        """A search that has not begun; its budget is what the step takes as it is.

        Args:
            concrete, sizes, arriving: as for `plan`, of one batch.
            interrupts: whose Ctrl-C it passes on.

        Raises:
            CheckmateError: as for `plan`.
        """
        with self._lock, apart():
            step, unchanged = self._begun(concrete, sizes, arriving)
            interrupts.pass_on()
        before = step.resident + unchanged.added
        question = Question(
            step.extracted, step.resident, before, 0, before, step.notes, device=step.device
        )
        return CompiledSearch(
            question, self._request, unchanged.added, interrupts, unchanged.is_recomputed
        )

    def leaner(
        self,
        concrete: Any,
        sizes: ArgumentSizes | None,
        budget: int,
        margin: int,
        arriving: int,
        exhausted: Outcome | None = None,
    ) -> Outcome:
        """As `Planner.leaner`."""
        with self._lock, planning_of(None) as interrupts:
            step, unchanged = self._begun(concrete, sizes, arriving)
            self._kept.forget(step.program)
            self._fixed[step.structure] = budget, margin
            return self._known_or_planned(
                step, unchanged, interrupts, may_exceed=False, exhausted=exhausted
            )

    def _begun(
        self, concrete: Any, sizes: ArgumentSizes | None, arriving: int | None, batches: int = 1
    ) -> tuple[PreparedStep, _Unchanged]:
        """The step, and what it takes as it is."""
        program = resolved(concrete, sizes)
        if has_several_replicas(program):
            raise CheckmateError(
                "xla-with-replicas",
                "the step of several replicas can't be planned for XLA: compile the model "
                "with jit_compile=False",
            )
        _refuse_outer_tensors(program.concrete)
        unchanged = self._as_it_is(program)
        coming = program.argument_bytes * batches if arriving is None else arriving
        device = current_device().compiled()
        step = begun(program, self._request, device, coming, unchanged.workspaces)
        return replace(step, notes=(*step.notes, *unchanged.notes)), unchanged

    def forget(self, planned: Outcome) -> None:
        """A step was over its budget: other processes are not to take its plan."""
        self._kept.forget(planned.extracted.program)

    def _known_or_planned(
        self,
        step: PreparedStep,
        unchanged: _Unchanged,
        interrupts: Interrupts,
        begin_with: Schedule | None = None,
        may_exceed: bool = True,
        exhausted: Outcome | None = None,
    ) -> Outcome:
        """A plan for what the device holds; in training under way one that exceeds the budget."""
        request = for_device(self._request, step.device)
        structure, resident = step.structure, step.resident
        under_way = may_exceed and unchanged.added <= self._largest
        largest = max(self._largest, unchanged.added)
        least, before = request.budget.least, resident + unchanged.added
        budget = resident if least else request.budget.in_bytes(resident, resident + largest)
        # XLA takes one large block; the piece that it gets may be so much larger.
        is_walled = bool(request.budget_from) and step.device.wall() is not None
        budget, margin = self._fixed.get(structure, (budget, MOST_WASTE if is_walled else 0))
        question = Question(
            step.extracted,
            resident,
            budget,
            margin,
            before,
            step.notes,
            device=step.device,
            budget_from=request.budget_from,
        )
        known = self._known.get(structure)
        if known is not None and not known.why_not(question, least):
            return _taken(known, question, request, source="")
        kept = self._kept.find(step.program)
        named = begin_with
        if kept is not None and self._kept.judge(kept, question):
            if _is_compiled_here(kept.plan):
                planned = _found_again(kept, question, request, under_way)
                self._known[structure] = kept
                self._largest = largest
                return planned
            named = kept.plan.schedule  # what it takes here is not known yet
        search = CompiledSearch(
            question, request, unchanged.added, interrupts, unchanged.is_recomputed
        )
        try:
            found = search.run(under_way, named)
        except TooSmallError as error:
            interrupts.pass_on()
            if exhausted is None:
                self._keep(search.leanest, question)
                raise
            found = leanest_instead(error, exhausted, question)
            self._fixed[structure] = budget, budget - found.plan.peak
        interrupts.pass_on()
        planned, made = self._keep(found, question)
        self._known[structure] = made
        self._largest = largest
        return planned

    def _keep(self, planned: Outcome, question: Question) -> tuple[Outcome, KeptPlan]:
        """The planned step, and its plan with what it was made for, kept for the next time."""
        device = compiler_name(current_device().name)
        plan = with_origin(planned.plan, question.extracted, question.resident, device)
        unchanged = question.baseline_peak
        made = KeptPlan(
            plan,
            planned.keeps,
            planned.beyond_budget,
            planned.runs_plain,
            Baseline(question.resident, unchanged, unchanged),
        )
        became = self._kept.keep(made)
        source = f"{planned.source}, {became}" if became else planned.source
        return replace(planned, plan=plan, source=source), made

    def _as_it_is(self, program: Program) -> _Unchanged:
        """What the step takes as it is: from a plan that was kept, or compiled now."""
        content = step_content(program)
        if content not in self._unchanged:
            with phase("extract"):
                named_or_kept = self._kept.find(program), self._kept.of_another_budget(program)
            count = len(program.operations)
            known = (_as_it_was(each, content, count) for each in named_or_kept if each)
            self._unchanged[content] = next(filter(None, known), None) or _compiled(program)
        return self._unchanged[content]


def _is_compiled_here(plan: Plan) -> bool:
    """Whether this XLA has compiled the plan, with these flags, for this device."""
    if plan.compiled_peak is None or plan.origin is None:
        return False
    return plan.origin.device == compiler_name(current_device().name)


def _as_it_was(kept: KeptPlan, content: str, count: int) -> _Unchanged | None:
    """What a plan that was made before says of the unchanged step of so many operations."""
    plan, workspaces = kept.plan, kept.workspaces(content, count)
    if not _is_compiled_here(plan) or workspaces is None:
        return None
    assert plan.origin is not None
    assert plan.compiled_baseline_peak is not None
    return _Unchanged(plan.compiled_baseline_peak - plan.origin.resident, workspaces)


def _compiled(program: Program) -> _Unchanged:
    memory = compiled_bytes(program, as_traced(program.concrete))
    with phase("extract"):
        workspaces, notes = _workspaces(program, memory)
    return _Unchanged(memory.added, workspaces, notes, memory.is_recomputed)


def _workspaces(
    program: Program, memory: CompiledMemory
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """What operations need only while they run, and what the user should know of that.

    On a GPU a library's kernels do, and the compiler has said how much. On a CPU XLA copies the
    operands of what stands alone, under other names: those are compiled alone.
    """
    device = current_device()
    if device.has_exact_compiler:
        inside, _ = inner_workspaces(program, lambda operation: 0)
        names = [each.name for each in program.operations]
        together = [
            size + memory.scratch.get(name, 0) for size, name in zip(inside, names, strict=True)
        ]
        return tuple(together), ()
    stored = CompiledWorkspaces.stored(device.name)
    known = _WORKSPACES.setdefault(compiler_name(device.name), stored)
    alone, _ = inner_workspaces(program, lambda each: 0 if windows_of(each) else known(each))
    try:
        known.keep()
    except CheckmateError as error:
        return tuple(alone), (f"workspaces not kept: {error}",)
    return tuple(alone), ()


def _found_again(kept: KeptPlan, question: Question, request: Request, under_way: bool) -> Outcome:
    """The step by a plan that was named, or made by an earlier process.

    Raises:
        BudgetError: it is the leanest one, and known to need more than the budget.
    """
    where = "by the plan that was named" if kept.path is None else "by a plan kept before"
    planned = _taken(kept, question, request, where)
    if planned.beyond_budget:
        note = planned.plan.notes[-1]
        if request.on_infeasible != "min" and not under_way:
            assert planned.plan.compiled_peak is not None
            raise BudgetError("budget-too-small", note, least=planned.plan.compiled_peak)
        warn_user("kept-plan-over-budget", note)
    return replace(planned, plan=replace(planned.plan, seconds=seconds_so_far()))


def _taken(kept: KeptPlan, question: Question, request: Request, source: str) -> Outcome:
    """The step by a plan that was made before, when more or less was held beside it."""
    planned = taken(kept, question, request, source)
    return replace(planned, plan=_moved(planned.plan, question))


def _moved(plan: Plan, question: Question) -> Plan:
    assert plan.origin is not None
    assert plan.compiled_peak is not None
    more = question.resident - plan.origin.resident
    return replace(
        plan,
        predicted_peak=plan.predicted_peak + more,
        baseline_peak=plan.baseline_peak + more,
        compiled_peak=plan.compiled_peak + more,
        compiled_baseline_peak=question.baseline_peak,
    )


def _refuse_outer_tensors(concrete: Any) -> None:
    """The step is compiled by itself, for which all that it reads must be there."""
    if any(not hasattr(captured, "numpy") for _, captured in captures(concrete)):
        raise CheckmateError(
            "xla-reads-outer-tensors",
            "the step reads tensors of the function around it, so that XLA can't compile it by "
            "itself to say what it takes: give them to the step as arguments, and keep variables "
            "outside of that function",
        )
