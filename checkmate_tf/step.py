"""A step that runs by a plan: which plan a call gets, and when one is made."""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable
from typing import Any, cast

import tensorflow as tf

from checkmate_tf.batch_sizes import BatchSizes
from checkmate_tf.distribution.strategies import (
    call_together,
    on_all_replicas,
    replica_context,
)
from checkmate_tf.memory.measure import held_bytes
from checkmate_tf.planning.monitor import MonitoredStep
from checkmate_tf.planning.plan import Plan
from checkmate_tf.planning.planner import PlannedStep, Planner
from checkmate_tf.planning.request import Request
from checkmate_tf.planning.trial_run import has_generators
from checkmate_tf.rewriting.batch_guard import call_if_larger
from checkmate_tf.rewriting.rewrite import in_place_of, rewrite_extracted
from checkmate_tf.trace.keras_models import (
    forget_functions,
    is_model,
    prepare_before_training,
    switch_off_xla,
)
from checkmate_tf.trace.sizes import has_unknown_sizes
from checkmate_tf.trace.tracer import Arguments, Traced, Tracer, batch_of, relaxed_batch
from checkmate_tf.user_warnings import warn_user
from profiles.tensorflow_internals import is_compiled_by_xla, is_traced_for_xla
from solvers import CheckmateError


class RematerializedStep:
    """A step that runs by a plan, one for every signature that it is called with.

    Attributes:
        function: the step itself, without a plan.
        plan: of the latest signature; None before the first call, and where nothing could be
            recomputed.
    """

    function: Callable[..., Any]
    plan: Plan | None

    def __init__(
        self,
        function: Callable[..., Any],
        request: Request,
        owner: Any = None,
        unbound: RematerializedStep | None = None,
    ) -> None:
        """Prepare a step; it is planned when it is first called.

        Args:
            function: the step itself.
            request: what the user asked for.
            owner: the object that the step is a method of, where `function` doesn't tell.
            unbound: the step of the owner's class, where this one belongs to one object.
        """
        functools.update_wrapper(self, function, updated=())
        owner = owner if owner is not None else getattr(function, "__self__", None)
        self.function = function
        self._request = request
        self._owner = owner
        self._unbound = unbound
        self._model = owner if is_model(owner) else None
        self._tracer = Tracer(function, self._model)
        self._planner = Planner(request)
        self._batches = BatchSizes(request.batch_size)
        is_traced = isinstance(function, tf.types.experimental.ConcreteFunction)
        self._takes_any_batch = not is_traced and getattr(function, "input_signature", None) is None
        self._lock = threading.RLock()
        self._said: set[str] = set()
        self._of_strategy: dict[int, RematerializedStep] = {}  # they hold their strategies
        self.plan = None
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
            bound = RematerializedStep(method, self._request, instance, unbound=self)
            vars(instance)[key] = bound
        bound.prepare(instance)
        return bound

    def prepare(self, model: Any) -> None:
        """Switch off XLA, Keras' default on a GPU, before it makes a function of this step."""
        if is_model(model) and switch_off_xla(model):
            self._say_once(
                "XLA is switched off for this model (jit_compile=False): it orders operations by "
                "itself, which undoes rematerialization. On a GPU steps may take longer without "
                "it; to train with XLA, leave rematerialize out"
            )

    def __reduce__(self) -> Any:
        """A copy, as of the model that it belongs to, plans for itself."""
        return RematerializedStep, (self.function, self._request, self._owner)

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the step; plan it first where it has not been called like this before."""
        if tf.config.functions_run_eagerly() or getattr(self._model, "run_eagerly", False):
            self._say_once("functions run eagerly: the step runs as it is, without a plan")
            return self.function(*args, **kwargs)
        context = replica_context()
        if context is not None:
            return self._on_all_replicas(context, args, kwargs)
        arguments = self._tracer.bind(args, kwargs)
        run = self._run_for(arguments) if tf.executing_eagerly() else self._part_for(arguments)
        return run(*arguments[0], **arguments[1])

    def _on_all_replicas(self, context: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The step as it is for one of several replicas, which are planned and run together."""
        _refuse_compilation(self.function)
        strategy = context.strategy
        with self._lock:
            if id(strategy) not in self._of_strategy:
                function = on_all_replicas(strategy, self.function)
                step = RematerializedStep(function, self._request, self._owner, unbound=self)
                self._of_strategy[id(strategy)] = step
            step = self._of_strategy[id(strategy)]
        result = call_together(context, step, *args, **kwargs)
        self.plan = step.plan
        return result

    def _run_for(self, arguments: Arguments) -> Callable[..., Any]:
        """What runs the step for arguments like these."""
        self._batches.note(batch_of(arguments))
        traced = self._tracer.traced()
        batch_size = self._batches.planned
        if batch_size is None or not self._takes_any_batch:
            return self._run_of(traced, arguments, arguments)
        relaxed = relaxed_batch(arguments, batch_size)
        try:
            return self._run_of(traced, relaxed, arguments)
        except CheckmateError:
            raise
        except (TypeError, ValueError) as error:
            # Or this raises the user's own error.
            run = self._run_of(self._tracer.begin_anew(), arguments, arguments)
            self._takes_any_batch = False
            reason = str(error).strip().splitlines()[-1].strip()
            self._say_once(
                "the step can't be traced for batches of any size, so each size gets a trace and "
                f"a plan of its own: {reason}"
            )
            return run

    def _run_of(self, traced: Traced, kinds: Arguments, arguments: Arguments) -> Callable[..., Any]:
        """What runs the step for arguments of these kinds, of which `arguments` are some."""
        concrete = self._tracer.trace(traced, kinds)
        batch_size = self._batches.planned
        if batch_size is None and has_unknown_sizes(concrete):
            batch_size = self._batches.largest
        key = concrete, batch_size
        if key not in traced.runs:
            with self._lock:
                if key not in traced.runs:
                    _refuse_compilation(self.function)
                    self._tracer.note_new_trace(arguments)
                    traced.runs[key] = self._planned_run(concrete, batch_size)
        return traced.runs[key]

    def _planned_run(self, concrete: Any, batch_size: int | None) -> Callable[..., Any]:
        planned = self._plan(concrete, batch_size)
        if planned is None:
            return cast(Callable[..., Any], concrete)
        step = _rewritten(planned)
        if not self._can_be_exchanged(planned):
            return step
        budget = planned.plan.budget

        def leaner(margin: int) -> Callable[..., Any]:
            leaner_one = self._planner.leaner(concrete, batch_size, budget, margin)
            self.plan = leaner_one.plan
            return _rewritten(leaner_one)

        return MonitoredStep(step, budget, leaner)

    def _can_be_exchanged(self, planned: PlannedStep) -> bool:
        """Whether a leaner plan may take over in the middle of training."""
        return (
            self._request.trial_run
            and planned.replicated is None
            and not self._request.budget.least
            and not planned.beyond_budget
            and held_bytes() is not None
            # Another step would draw the same random numbers again.
            and not has_generators(planned.extracted)
        )

    def _part_for(self, arguments: Arguments) -> Callable[..., Any]:
        """What makes the step a part of the function that is being traced."""
        _refuse_compilation(self.function)
        batch = batch_of(arguments)
        self._batches.note(batch)
        concrete = self._tracer.trace_anew(arguments)
        size = self._batches.planned if self._batches.planned is not None else self._batches.largest
        planned = self._plan(concrete, size)
        if planned is None:
            return cast(Callable[..., Any], concrete)
        if batch is not None and batch.shape[0] is None and size is not None:
            call_if_larger(batch, size, self._larger_batch_came)
        return _rewritten(planned)

    def _plan(self, concrete: Any, batch_size: int | None) -> PlannedStep | None:
        planned = self._planner.plan(concrete, batch_size)
        if planned is None:
            name = getattr(self.function, "__name__", repr(self.function))
            self._say_once(f"nothing in {name!r} can be recomputed; it runs unchanged")
        else:
            self.plan = planned.plan
        return planned

    def _larger_batch_came(self, size: int) -> None:
        """A step that is part of a larger function met a batch that it was not planned for."""
        again = "steps are planned for it from now on"
        if self._model is None:
            again = "trace the function that calls the step again to have it planned for it"
        if self._batches.note_inside(size, again) and self._model is not None:
            forget_functions(self._model)

    def _say_once(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            warn_user(message)


def _refuse_compilation(function: Callable[..., Any]) -> None:
    """XLA schedules for itself and ignores the order that saves memory."""
    if is_compiled_by_xla(function) or is_traced_for_xla():
        raise CheckmateError(
            "the step is compiled by XLA, which undoes rematerialization: make the function that "
            "calls it with tf.function(jit_compile=False), or the model with "
            "model.compile(…, jit_compile=False)"
        )


def _rewritten(planned: PlannedStep) -> Callable[..., Any]:
    if planned.replicated is not None:
        return in_place_of(planned.extracted.program.concrete, planned.replicated.emit)
    return rewrite_extracted(planned.extracted, planned.plan.schedule, planned.function)
