"""A step that runs by a plan: which plan a call gets, and when one is made."""

from __future__ import annotations

import functools
import sys
import threading
import time
import types
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import tensorflow as tf

from checkmate_tf.batch_sizes import BatchSizes
from checkmate_tf.distribution.strategies import (
    call_together,
    on_all_replicas,
    replica_context,
)
from checkmate_tf.memory.measure import arriving_bytes, held_bytes
from checkmate_tf.phases import phase
from checkmate_tf.planning.compiled.planner import CompiledPlanner
from checkmate_tf.planning.loops_of_steps import why_nothing_can_be_recomputed
from checkmate_tf.planning.monitor import BudgetWatch, MonitoredStep
from checkmate_tf.planning.planner import PlannedStep, Planner
from checkmate_tf.planning.request import Request
from checkmate_tf.planning.trial.trial_run import has_generators
from checkmate_tf.planning_display import PlanningDisplay
from checkmate_tf.plans.line import line_about
from checkmate_tf.plans.plan import NOT_PLANNED_YET, Plan
from checkmate_tf.rewriting.batch_guard import call_if_larger
from checkmate_tf.rewriting.rewrite import as_function, in_place_of, rewrite_extracted
from checkmate_tf.trace.batched_arguments import Arguments, BatchedArguments
from checkmate_tf.trace.inlining import as_traced
from checkmate_tf.trace.keras_models import (
    forget_functions,
    is_model,
    prepare_before_training,
    run_training_by,
    switch_off_xla,
    xla_is_kerass_default,
)
from checkmate_tf.trace.sizes import has_unknown_sizes
from checkmate_tf.trace.tracer import Traced, Tracer
from checkmate_tf.user_errors import users_lines
from checkmate_tf.user_warnings import warn_user
from profiles.tensorflow_internals import compile_mark, is_compiled_by_xla, is_traced_for_xla
from solvers import BudgetError, CheckmateError


class RematerializedStep:
    """A step that runs by a plan, one for every signature that it is called with.

    Attributes:
        function: the step itself, without a plan.
        plan: of the latest signature; None where nothing could be recomputed. Before the first
            call it says, as text, that it is made then.
        request: what the user asked for.
        xla_was_on: what marks the `compile` of the model for which XLA was switched off, if any.
    """

    function: Callable[..., Any]
    plan: Plan | None
    __name__: str
    __qualname__: str

    def __init__(
        self,
        function: Callable[..., Any],
        request: Request,
        owner: Any = None,
        unbound: RematerializedStep | None = None,
        planner: Planner | None = None,
    ) -> None:
        """Prepare a step; it is planned when it is first called.

        Args:
            function: the step itself.
            request: what the user asked for.
            owner: the object that the step is a method of, where `function` doesn't tell.
            unbound: the step of the owner's class, where this one belongs to one object.
            planner: one that knows plans for the step already.
        """
        functools.update_wrapper(self, function, updated=())
        owner = owner if owner is not None else getattr(function, "__self__", None)
        self.function = function
        self.request = request
        self._owner = owner
        self._unbound = unbound
        self._model = owner if is_model(owner) else None
        self._tracer = Tracer(function, self._model)
        self._planner = planner or Planner(request)
        self._compiled_planner = CompiledPlanner(request)
        self._batches = BatchSizes(request.batch_size)
        is_traced = isinstance(function, tf.types.experimental.ConcreteFunction)
        self._has_signature = getattr(function, "input_signature", None) is not None
        self._takes_any_batch = not is_traced
        self._batched = BatchedArguments()
        self._lock = threading.RLock()
        self._said: set[str] = set()
        self.xla_was_on: Any = None
        self._watch: BudgetWatch | None = None  # over the steps that run inside `fit`
        self._train_by = self._train  # one object, by which it is known again
        self._of_strategy: dict[int, RematerializedStep] = {}  # they hold their strategies
        self.plan = NOT_PLANNED_YET
        if self._model is not None and unbound is None:
            prepare_before_training(self._model, RematerializedStep)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As methods do: the step of one model, which keeps it."""
        if instance is None or not hasattr(self.function, "__get__"):
            return self
        if not isinstance(getattr(instance, "__dict__", None), dict):
            # A class, or an object with slots: it is an argument like others.
            return types.MethodType(self, instance)
        # In the instance, so that both go together; a copy of it needs a step of its own.
        key = f"_rematerialized_{id(self)}"
        bound: RematerializedStep | None = vars(instance).get(key)
        # Another step may have had the same id, before it was freed.
        if bound is None or bound._owner is not instance or bound._unbound is not self:
            method = self.function.__get__(instance, owner)
            bound = RematerializedStep(method, self.request, instance, unbound=self)
            vars(instance)[key] = bound
        bound.prepare(instance)
        return bound

    def prepare(self, model: Any) -> None:
        """Switch off XLA, Keras' default on a GPU, before it makes a function of this step.

        On a machine that has only CPUs it was asked for, and stays.
        """
        if is_model(model) and xla_is_kerass_default() and switch_off_xla(model):
            self.xla_was_on = compile_mark(model)
            self.say_once(
                "XLA is switched off for this model (jit_compile=False): on a GPU it is Keras' "
                "default, and plans for it have been run on CPUs only. Steps may take longer "
                "without it. To train with XLA, leave rematerialize out, or call the step in a "
                "tf.function(jit_compile=True) of your own"
            )

    def __reduce__(self) -> Any:
        """As functions and methods do; else a copy, which plans for itself.

        A function of a module is found by its name, and a method in its object.
        """
        if self._unbound is not None:
            return getattr, (self._owner, self.__name__)
        if _found_by_name(self) is self:
            return self.__qualname__
        return _copied, (self.function, self.request, self._owner)

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the step; plan it first where it has not been called like this before."""
        if self.plan is NOT_PLANNED_YET:
            self.plan = None
        if tf.config.functions_run_eagerly() or getattr(self._model, "run_eagerly", False):
            self.say_once("functions run eagerly: the step runs as it is, without a plan")
            return self.function(*args, **kwargs)
        try:
            context = replica_context()
            if context is not None:
                return self._on_all_replicas(context, args, kwargs)
            arguments = self._tracer.bind(args, kwargs)
            run = self._run_for(arguments) if tf.executing_eagerly() else self._part_for(arguments)
            return run(*arguments[0], **arguments[1])
        except Exception as error:
            raise error.with_traceback(users_lines(error)) from error.__cause__

    def _on_all_replicas(self, context: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The step as it is for one of several replicas, which are planned and run together."""
        _refuse_compilation(self.function)
        strategy = context.strategy
        with self._lock:
            if id(strategy) not in self._of_strategy:
                function = on_all_replicas(strategy, self.function)
                step = RematerializedStep(function, self.request, self._owner, unbound=self)
                self._of_strategy[id(strategy)] = step
            step = self._of_strategy[id(strategy)]
        result = call_together(context, step, *args, **kwargs)
        self.plan = step.plan
        return result

    def _run_for(self, arguments: Arguments) -> Callable[..., Any]:
        """What runs the step for arguments like these."""
        if self._runs_unplanned(arguments):
            return cast(Callable[..., Any], self._tracer.traced().function)
        self._batches.note(self._batched.batch_of(arguments, self._batches.planned))
        traced = self._tracer.traced()
        size = self._batches.planned
        kinds, places = arguments, frozenset[int]()
        if self._takes_any_batch and self._has_signature:
            places = self._batched.places(arguments, size)
        elif self._takes_any_batch and size is not None:
            kinds = self._batched.relaxed(arguments, size)
        try:
            return self._run_of(traced, kinds, arguments, places)
        except CheckmateError:
            raise
        except (TypeError, ValueError) as error:
            if kinds is arguments and not places:
                raise
            failed = error
        # Or this raises the user's own error.
        run = self._run_of(self._tracer.begin_anew(), arguments, arguments, frozenset())
        self._takes_any_batch = False
        reason = str(failed).strip().splitlines()[-1].strip()
        self.say_once(
            "the step can't be traced for batches of any size, so each size gets a trace and "
            f"a plan of its own: {reason}"
        )
        return run

    def _run_of(
        self, traced: Traced, kinds: Arguments, arguments: Arguments, places: frozenset[int]
    ) -> Callable[..., Any]:
        """What runs the step for arguments of these kinds, of which `arguments` are some."""
        begun = time.perf_counter()
        concrete = self._tracer.trace(traced, kinds, places)
        seconds = time.perf_counter() - begun
        batch_size = self._batches.planned
        if batch_size is None and has_unknown_sizes(concrete):
            batch_size = self._batches.largest
        key = concrete, batch_size
        if key not in traced.runs:
            with self._lock:
                if key not in traced.runs:
                    self._tracer.note_new_trace(arguments)
                    traced.runs[key] = self._planned_run(
                        concrete, batch_size, arriving_bytes(arguments), seconds
                    )
        return traced.runs[key]

    def _runs_unplanned(self, arguments: Arguments) -> bool:
        """Whether an argument's size depends on its values, which is said."""
        for each in tf.nest.flatten(arguments):
            if isinstance(each, tf.RaggedTensor | tf.SparseTensor):
                self.say_once(
                    f"an argument of the step is a {type(each).__name__}, whose size depends on "
                    "its values, so that memory can't be planned: the step runs without a plan. "
                    "To have one, make the argument dense before the step, with "
                    "to_tensor(shape=…) or tf.sparse.to_dense"
                )
                return True
        return False

    def _planned_run(
        self, concrete: Any, batch_size: int | None, arriving: int, tracing: float
    ) -> Callable[..., Any]:
        """What runs the step by a plan.

        Args:
            concrete: the traced step.
            batch_size: the first dimension of inputs that were traced without one.
            arriving: bytes of its arguments that are not on the device yet.
            tracing: seconds that its trace has taken.
        """
        compiled = self._is_compiled()
        shown = PlanningDisplay(self.request.verbose, {"trace": tracing})
        with shown.under_way():
            planned = self._plan(concrete, batch_size, arriving)
            if planned is None:
                return cast(Callable[..., Any], concrete)
            step = _rewritten(planned, compiled, alone=True)
        self._tell(planned, shown)
        if compiled:
            return step
        if not self._can_be_exchanged(planned):
            over = self._watch_for(planned)
            return step if over is None else partial(over.run, step)
        budget = planned.plan.budget

        def leaner(margin: int) -> Callable[..., Any]:
            shown = PlanningDisplay(self.request.verbose)
            with shown.under_way():
                leaner_one = self._planner.leaner(concrete, batch_size, budget, margin, arriving)
                leaner_step = _rewritten(leaner_one, compiled=False, alone=True)
            self._tell(leaner_one, shown)
            return leaner_step

        return MonitoredStep(step, budget, leaner, partial(self._planner.forget, planned))

    def _tell(self, planned: PlannedStep, shown: PlanningDisplay) -> None:
        """Say in one line what was planned, where it was shown."""
        self.plan = replace(planned.plan, seconds=dict(shown.seconds))
        if planned.source:
            shown.conclude(line_about(self.plan, planned.source))

    def _watch_for(self, planned: PlannedStep) -> BudgetWatch | None:
        """What says that a step is over its budget, unless it is known or cannot be seen."""
        if self.request.budget.least or planned.beyond_budget or held_bytes() is None:
            return None
        return BudgetWatch(planned.plan.budget, partial(self._planner.forget, planned))

    def _train(self, function: Callable[..., Any], iterator: Any) -> Any:
        """Run a batch of `fit` by the model's train function, and say if it is over the budget."""
        watch = self._watch
        return function(iterator) if watch is None else watch.run(function, iterator)

    def _can_be_exchanged(self, planned: PlannedStep) -> bool:
        """Whether a leaner plan may take over in the middle of training."""
        return (
            self.request.trial_run
            and planned.replicated is None
            and not self.request.budget.least
            and not planned.beyond_budget
            and held_bytes() is not None
            # Another step would draw the same random numbers again.
            and not has_generators(planned.extracted)
        )

    def _part_for(self, arguments: Arguments) -> Callable[..., Any]:
        """What makes the step a part of the function that is being traced."""
        if self._runs_unplanned(arguments):
            return self.function
        batch = self._batched.batch_of(arguments, self._batches.planned)
        self._batches.note(batch)
        begun = time.perf_counter()
        concrete = self._tracer.trace_anew(
            arguments, self._batched.places(arguments, self._batches.planned)
        )
        tracing = time.perf_counter() - begun
        size = self._batches.planned if self._batches.planned is not None else self._batches.largest
        try:
            shown = PlanningDisplay(self.request.verbose, {"trace": tracing})
            with shown.under_way():
                planned = self._plan(concrete, size)
        except CheckmateError:
            raise
        except (TypeError, ValueError) as error:
            if not has_unknown_sizes(concrete):
                raise
            raise CheckmateError(
                f"with {size} for every unknown first dimension the step can't be planned: "
                f"{str(error).strip().splitlines()[-1].strip()}. Give what is no batch a known "
                "shape where the step is traced, in the input_signature for one"
            ) from None
        if planned is None:
            return cast(Callable[..., Any], concrete)
        if self._is_compiled():
            if batch is not None and batch.shape[0] is None:
                # XLA compiles no call of Python, by which it would be noticed.
                note = f"compiled by XLA, a batch larger than {size} is not noticed"
                self.plan = replace(planned.plan, notes=(*planned.plan.notes, note))
            return _rewritten(planned, compiled=True)
        if batch is not None and batch.shape[0] is None and size is not None:
            call_if_larger(batch, size, self._larger_batch_came)
        if self._model is not None:
            if self._watch is not None:
                self._watch.end()  # over the batch under way, in which planning took memory
            self._watch = self._watch_for(planned)
            run_training_by(self._model, self._train_by)
        step = _rewritten(planned, compiled=False)

        def emit(*args: Any, **kwargs: Any) -> Any:
            with shown.under_way(), phase("emit"):
                result = step(*args, **kwargs)
            self._tell(planned, shown)
            return result

        return emit

    def _plan(
        self, concrete: Any, batch_size: int | None, arriving: int | None = None
    ) -> PlannedStep | None:
        try:
            if self._is_compiled():
                planned = self._compiled_planner.plan(concrete, batch_size)
            else:
                planned = self._planner.plan(concrete, batch_size, arriving)
        except BudgetError as error:
            if self.request.on_infeasible != "plain":
                raise
            self.say_once(f"{error}; the step runs without a plan")
            self.plan = None
            return None
        if planned is None:
            name = getattr(self.function, "__name__", repr(self.function))
            why = why_nothing_can_be_recomputed(concrete)
            self.say_once(f"nothing in {name!r} can be recomputed; it runs unchanged{why}")
        else:
            self.plan = planned.plan
        return planned

    def _is_compiled(self) -> bool:
        """Whether XLA compiles the step, here or in a function around it."""
        return is_compiled_by_xla(self.function) or is_traced_for_xla()

    def _larger_batch_came(self, size: int) -> None:
        """A step that is part of a larger function met a batch that it was not planned for."""
        again = "steps are planned for it from now on"
        if self._model is None:
            again = "trace the function that calls the step again to have it planned for it"
        if self._batches.note_inside(size, again) and self._model is not None:
            forget_functions(self._model)

    def say_once(self, message: str) -> None:
        """Warn the user, if this has not been said of this step before."""
        if message not in self._said:
            self._said.add(message)
            warn_user(message)


def _refuse_compilation(function: Callable[..., Any]) -> None:
    """Of several replicas no step is planned for XLA."""
    if is_compiled_by_xla(function) or is_traced_for_xla():
        raise CheckmateError(
            "the step of several replicas is compiled by XLA, for which it can't be planned: make "
            "the function that calls it with tf.function(jit_compile=False), or the model with "
            "model.compile(…, jit_compile=False)"
        )


def _rewritten(planned: PlannedStep, compiled: bool, alone: bool = False) -> Callable[..., Any]:
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


def _found_by_name(step: RematerializedStep) -> Any:
    """What the module of `step` has under its name."""
    found: Any = sys.modules.get(step.__module__)
    for name in step.__qualname__.split("."):
        found = getattr(found, name, None)
    return found


def _copied(function: Any, request: Request, owner: Any) -> RematerializedStep:
    if isinstance(function, RematerializedStep):  # a method that was found in a copied object
        function = function.function
    return RematerializedStep(function, request, owner)
