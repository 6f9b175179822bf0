"""What runs a traced step by a plan: alone, or as a part of the function that is being traced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

from checkmate_tf.batches.too_large import largest_instead
from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.fit_batches import FitBatches
from checkmate_tf.phases import phase
from checkmate_tf.planning.compiled.planner import CompiledPlanner
from checkmate_tf.planning.compiled.without_xla import WithoutXla
from checkmate_tf.planning.loops_of_steps import why_nothing_can_be_recomputed
from checkmate_tf.planning.monitor import BudgetWatch, MonitoredStep
from checkmate_tf.planning.outcome import Outcome
from checkmate_tf.planning.planner import Planner
from checkmate_tf.planning.preparation import structure_of
from checkmate_tf.planning.request import Request
from checkmate_tf.planning.settings import LEANER_ATTEMPTS
from checkmate_tf.planning.trial.trial_run import has_generators
from checkmate_tf.plans.line import line_about, line_about_unchanged
from checkmate_tf.plans.plan import Plan
from checkmate_tf.program.emit import xla_compiles_parts
from checkmate_tf.program.rewrite import as_function, in_place_of, rewrite_extracted
from checkmate_tf.progress import PlanningDisplay
from checkmate_tf.retries import Retries, SafeStep
from checkmate_tf.trace.inlining import as_traced
from checkmate_tf.trace.sizes import ArgumentSizes, has_unknown_sizes
from checkmate_tf.user_warnings import left_unsaid
from profiles.measure.compilation import NotCompilableError
from profiles.tensorflow_internals import is_compiled_by_xla, is_traced_for_xla
from solvers import BudgetError, CheckmateError, ComputationGraph, format_bytes


class PlannedRuns:
    """Plans for the traces of one step, and what runs them.

    Attributes:
        fit: the batches that come from `fit`, where the step is a model's.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        request: Request,
        model: Any,
        planner: Planner | CompiledPlanner | None,
        note_plan: Callable[[Plan | None], None],
        say_once: Callable[[str, str], None],
    ) -> None:
        """Nothing is planned yet.

        Args:
            function: the step itself.
            request: what the user asked for.
            model: the Keras model that the step belongs to; None where there is none.
            planner: one that knows plans for the step already.
            note_plan: is given each plan, and None where the step runs without one.
            say_once: warns the user of what has not been said before.
        """
        self._function = function
        self._request = request
        self._model = model
        self._planner = planner if isinstance(planner, Planner) else Planner(request)
        self._compiled_planner = (
            planner if isinstance(planner, CompiledPlanner) else CompiledPlanner(request)
        )
        self._note_plan = note_plan
        self._say_once = say_once
        self.fit = FitBatches(model, say_once)
        # By structure, bytes by which steps inside `fit` have exceeded their plans, one for each.
        self._margins: dict[ComputationGraph, list[int]] = defaultdict(list)

    def alone(
        self, concrete: Any, sizes: ArgumentSizes | None, arriving: int, tracing: float
    ) -> Callable[..., Any]:
        """What runs the step by a plan.

        Args:
            concrete: the traced step.
            sizes: of inputs that were traced without them.
            arriving: bytes of its arguments that are not on the device yet.
            tracing: seconds that its trace has taken.

        Raises:
            BudgetError: no plan was found within the budget.
        """
        compiled = self._is_compiled()
        shown = PlanningDisplay(self._request.verbose, {"trace": tracing})
        with shown.under_way():
            try:
                planned = self.planned(concrete, sizes, arriving)
            except WithoutXla as left:
                compiled = False
                planned = self._planned_without_xla(left, concrete, sizes, arriving)
            if planned is None:
                return cast(Callable[..., Any], concrete)
            step = _rewritten(planned, compiled, alone=True)
        self._tell(planned, shown)
        retries = Retries()
        retries.plan_by(planned, arriving)
        monitored = partial(self._monitored, retries, concrete, sizes, arriving)

        def plan_again(before: Outcome, budget: int, margin: int) -> Callable[..., Any]:
            leaner = self._leaner_than(before, concrete, sizes, arriving, budget, margin)
            retries.plan_by(leaner, arriving)
            return monitored(leaner, _rewritten(leaner, compiled, alone=True))

        return SafeStep(monitored(planned, step), retries, plan_again)

    def _monitored(
        self,
        retries: Retries,
        concrete: Any,
        sizes: ArgumentSizes | None,
        arriving: int,
        planned: Outcome,
        step: Callable[..., Any],
    ) -> Callable[..., Any]:
        """The step by a plan, that is said to be over its budget, or exchanged, where it is.

        Args:
            retries: is told of the leaner plan.
            concrete, sizes, arriving: as for `alone`.
            planned: the step and its plan.
            step: what runs it.
        """
        if planned.plan.compiled_peak is not None or not self._can_be_exchanged(planned):
            over = self._watch_for(planned)
            return step if over is None else partial(over.run, step)
        budget = planned.plan.budget

        def leaner(margin: int) -> Callable[..., Any]:
            shown = PlanningDisplay(self._request.verbose)
            with shown.under_way():
                leaner_one = self._planner.leaner(concrete, sizes, budget, margin, arriving)
                leaner_step = _rewritten(leaner_one, compiled=False, alone=True)
            self._tell(leaner_one, shown)
            retries.plan_next_by(leaner_one, arriving)
            return leaner_step

        forget = partial(self._planner.forget, planned)
        return MonitoredStep(step, budget, leaner, forget, planned.is_cold)

    def _leaner_than(
        self,
        planned: Outcome,
        concrete: Any,
        sizes: ArgumentSizes | None,
        arriving: int,
        budget: int,
        margin: int,
    ) -> Outcome:
        """The step by a plan that takes less than one that exhausts the device's memory.

        Args:
            planned: the step by that one.
            concrete, sizes, arriving: as for `alone`.
            budget: in bytes.
            margin: bytes of it that are left alone.

        Raises:
            BudgetError: no leaner one is found.
        """
        leanest = BudgetError("device-exhausted", "the plan is the leanest that was found")
        if self._request.budget.least or planned.beyond_budget:
            raise leanest
        shown = PlanningDisplay(self._request.verbose)
        with shown.under_way():
            given = concrete, sizes, budget, margin, arriving
            found = self._planner_of(planned).leaner(*given, exhausted=planned)
        is_the_same = found.plan.schedule == planned.plan.schedule
        if is_the_same and found.runs_plain == planned.runs_plain:
            raise leanest
        self._tell(found, shown)
        return found

    def part(
        self,
        concrete: Any,
        sizes: ArgumentSizes | None,
        tracing: float,
        guard: Callable[[], None] | None,
    ) -> Callable[..., Any]:
        """What makes the step, by a plan, a part of the function that is being traced.

        Args:
            concrete: the traced step.
            sizes: of inputs that were traced without them.
            tracing: seconds that its trace has taken.
            guard: makes the function notice a batch that is larger than that; None where none may
                come.

        Raises:
            BudgetError: no plan was found within the budget.
            CheckmateError: the step can't be planned for such a batch.
        """
        self.fit.begin_trace(concrete)
        try:
            shown = PlanningDisplay(self._request.verbose, {"trace": tracing})
            with shown.under_way():
                planned = self.planned(concrete, sizes)
        except CheckmateError:
            raise
        except (TypeError, ValueError) as error:
            if not has_unknown_sizes(concrete):
                raise
            taken = (
                sizes if isinstance(sizes, tuple) else f"{sizes} for every unknown first dimension"
            )
            raise CheckmateError(
                "batch-refused",
                f"with {taken} the step can't be planned: "
                f"{str(error).strip().splitlines()[-1].strip()}. Give what is no batch a known "
                "shape where the step is traced, in the input_signature for one",
            ) from None
        if planned is None:
            self.fit.plan_by(None)
            return cast(Callable[..., Any], concrete)
        compiled = self._is_compiled()
        if compiled and guard is not None:
            # XLA compiles no call of Python, by which it would be noticed.
            note = f"compiled by XLA, a batch larger than {sizes} is not noticed"
            plan = replace(planned.plan, notes=(*planned.plan.notes, note))
            planned = replace(planned, plan=plan)
            self._note_plan(plan)
        elif guard is not None and sizes is not None:
            guard()
        if self._model is not None:
            leaner = partial(self._leaner_in_fit, planned, sizes)
            self.fit.watch_by(self._watch_for(planned, leaner))
            several = self._model.steps_per_execution > 1
            batches = current_device().batches_held(several_at_once=several)
            coming = planned.extracted.program.argument_bytes * batches
            self.fit.plan_by(planned, coming, partial(self._leaner_for_fit, sizes))
        step = _rewritten(planned, compiled=compiled)

        def emit(*args: Any, **kwargs: Any) -> Any:
            with shown.under_way(), phase("emit"):
                result = step(*args, **kwargs)
            self._tell(planned, shown)
            self.fit.end_trace()
            return result

        return emit

    def planned(
        self, concrete: Any, sizes: ArgumentSizes | None, arriving: int | None = None
    ) -> Outcome | None:
        """The step with its plan; None where it runs without one, which is said.

        Args:
            concrete: the traced step.
            sizes: of inputs that were traced without them.
            arriving: bytes of its arguments that are not on the device yet.

        Raises:
            BudgetError: no plan was found within the budget.
            WithoutXla: compiled by XLA the step can't be planned; without XLA it may be.
        """
        self._say_if_it_is_more_than_there_is()
        try:
            if self._is_compiled():
                planned = self._compiled(concrete, sizes, arriving)
            elif self.fit.left is not None:
                planned = self._instead_of_xla(concrete, sizes, arriving)
            else:
                planned = self._uncompiled(concrete, sizes, arriving)
        except BudgetError as error:
            if self.fit.left is not None:
                raise
            self._unplanned_or(error)
            return None
        if planned is None:
            name = getattr(self._function, "__name__", repr(self._function))
            why = why_nothing_can_be_recomputed(concrete)
            self._say_once(
                "nothing-to-recompute",
                f"nothing in {name!r} can be recomputed; it runs unchanged{why}",
            )
        else:
            self._note_plan(planned.plan)
            if xla_compiles_parts() and not self._is_compiled():
                self._say_once(
                    "xla-left",
                    "no part of this step is compiled by XLA, as tf.config.optimizer.set_jit asks "
                    "for, and steps may take longer: XLA would run it in an order of its own",
                )
        return planned

    def _compiled(
        self, concrete: Any, sizes: ArgumentSizes | None, arriving: int | None
    ) -> Outcome | None:
        """As `planned`, of a step that XLA compiles."""
        if self.fit.neither is not None:
            raise self.fit.neither
        # What a function of the user's is called with is on the device already.
        coming = 0 if arriving is None and self._model is None else arriving
        try:
            return self._compiled_planner.plan(concrete, sizes, coming, self._batches)
        except (BudgetError, NotCompilableError) as error:
            # A function of the user's around the step compiles it, whatever becomes of its plan.
            if self.fit.may_leave_xla or is_compiled_by_xla(self._function):
                raise WithoutXla(error) from error
            raise

    def _uncompiled(
        self, concrete: Any, sizes: ArgumentSizes | None, arriving: int | None
    ) -> Outcome | None:
        """As `planned`, of a step that XLA doesn't compile."""
        try:
            return self._planner.plan(concrete, sizes, arriving, self._batches)
        except BudgetError as error:
            request = self._request
            if not request.budget.device or request.on_infeasible != "error":
                raise
            given = self._function, self._model, concrete, sizes
            raise largest_instead(error, *given, request, self._batches) from None

    def _instead_of_xla(
        self, concrete: Any, sizes: ArgumentSizes | None, arriving: int | None
    ) -> Outcome | None:
        """As `_uncompiled`, of a step that has no plan with XLA.

        Raises:
            BudgetError: nor is there one without it. To run unchanged over the budget, a step need
                not leave XLA.
        """
        with left_unsaid("no-plan-saves-memory"):
            planned = self._uncompiled(concrete, sizes, arriving)
        if planned is not None and planned.runs_plain and not planned.keeps:
            takes = planned.plan.predicted_peak
            raise BudgetError(
                "budget-too-small",
                f"no plan saves memory: the step takes {format_bytes(takes)} as it is",
                takes,
            )
        return planned

    def _planned_without_xla(
        self, left: WithoutXla, concrete: Any, sizes: ArgumentSizes | None, arriving: int
    ) -> Outcome | None:
        """As `planned`, of a step that is called by itself, where XLA can't be planned for."""
        try:
            planned = self._instead_of_xla(concrete, sizes, arriving)
        except BudgetError as error:
            self._unplanned_or(left.and_without(error))
            return None
        self._say_once("xla-left", left.in_words)
        self._note_plan(None if planned is None else planned.plan)
        return planned

    def _unplanned_or(self, error: BudgetError) -> None:
        """Let the step run without a plan where the user wants it so, which is said.

        Raises:
            BudgetError: `error`, where it is to be one.
        """
        if self._request.on_infeasible != "plain":
            raise error
        self._say_once("runs-without-a-plan", f"{error}; the step runs without a plan")
        self._note_plan(None)

    @property
    def _batches(self) -> int:
        """How many batches `fit` will put on the device while a step runs."""
        several = getattr(self._model, "steps_per_execution", 1) > 1
        return current_device().batches_held(self.fit.held_already, several)

    def _say_if_it_is_more_than_there_is(self) -> None:
        budget, device = self._request.budget.bytes, current_device()
        there = device.size()
        if budget is not None and there is not None and budget > there:
            self._say_once(
                "budget-above-the-device",
                f"the budget of {format_bytes(budget, there)} is more than the "
                f"{format_bytes(there, budget)} that {device.name} has: steps within it may "
                "run out of memory",
            )

    def _tell(self, planned: Outcome, shown: PlanningDisplay) -> None:
        """Say in one line what was planned, where it was shown."""
        plan = replace(planned.plan, seconds=dict(shown.seconds))
        self._note_plan(plan)
        if planned.source:
            fits = planned.runs_plain and planned.keeps
            about = line_about_unchanged if fits else line_about
            shown.conclude("plan-made", about(plan, planned.source))

    def _watch_for(
        self, planned: Outcome, leaner: Callable[[int, int], None] | None = None
    ) -> BudgetWatch | None:
        """What says that a step is over its budget, unless it is known or cannot be seen.

        Where plans may be exchanged, `leaner` lets a leaner one take over.
        """
        if self._request.budget.least or planned.beyond_budget or held_bytes() is None:
            return None
        is_compiled = planned.plan.compiled_peak is not None
        if is_compiled and not current_device().has_exact_compiler:
            return None
        attempts = len(self._margins[structure_of(planned.extracted.graph)])
        if not self._can_be_exchanged(planned) or attempts >= LEANER_ATTEMPTS:
            leaner = None
        forget = partial(self._planner_of(planned).forget, planned)
        return BudgetWatch(planned.plan.budget, forget, leaner, planned.is_cold)

    def _planner_of(self, planned: Outcome) -> Planner | CompiledPlanner:
        is_compiled = planned.plan.compiled_peak is not None
        return self._compiled_planner if is_compiled else self._planner

    def _leaner_in_fit(
        self, planned: Outcome, sizes: ArgumentSizes | None, peak: int, held: int
    ) -> None:
        """Let Keras make its train function anew, by a leaner plan, for the next batch.

        Args:
            planned: the step that took more than its budget.
            sizes: as for `part`.
            peak: bytes that it held at most.
            held: bytes that were held before.
        """
        program, plan = planned.extracted.program, planned.plan
        assert plan.origin is not None
        # What is held beside the step is counted when a plan is made.
        counted = max(0, held + program.argument_bytes - plan.origin.resident)
        margins = self._margins[structure_of(planned.extracted.graph)]
        margins.append(max(0, peak - plan.budget - counted))
        shown = PlanningDisplay(self._request.verbose)
        with shown.under_way():
            self._planner_of(planned).leaner(
                as_traced(program.concrete),
                sizes,
                plan.budget,
                sum(margins),
                program.argument_bytes,
            )
        self.fit.plan_again()

    def _leaner_for_fit(
        self, sizes: ArgumentSizes | None, planned: Outcome, budget: int, margin: int
    ) -> None:
        """Find a leaner plan, by which Keras' train function is traced anew for the same batch."""
        program = planned.extracted.program
        arriving = program.argument_bytes * self._batches
        self._leaner_than(planned, as_traced(program.concrete), sizes, arriving, budget, margin)

    def _can_be_exchanged(self, planned: Outcome) -> bool:
        """Whether a leaner plan may take over in the middle of training."""
        return (
            self._request.trial_run
            and planned.replicated is None
            and not planned.runs_plain
            and not self._request.budget.least
            and not planned.beyond_budget
            and held_bytes() is not None
            # Another step would draw the same random numbers again.
            and not has_generators(planned.extracted)
        )

    def _is_compiled(self) -> bool:
        """Whether XLA compiles the step, here or in a function around it."""
        return is_compiled_by_xla(self._function) or is_traced_for_xla()


def _rewritten(planned: Outcome, compiled: bool, alone: bool = False) -> Callable[..., Any]:
    """The step by its plan.

    Args:
        planned: the step and its plan.
        compiled: whether XLA compiles it.
        alone: whether it will run as a function of its own, which is made now.
    """
    extracted, function = planned.extracted, planned.function
    concrete = extracted.program.concrete
    if planned.runs_plain:
        return cast(Callable[..., Any], as_traced(concrete))
    if planned.replicated is not None:
        return in_place_of(concrete, planned.replicated.emit)
    if alone and function is None and not compiled:
        function = as_function(extracted, planned.plan.schedule)
    return rewrite_extracted(extracted, planned.plan.schedule, function, compiled=compiled)
