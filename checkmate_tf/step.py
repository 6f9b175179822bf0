"""A step that runs by a plan: which plan a call gets, and when one is made."""

from __future__ import annotations

import functools
import sys
import threading
import time
import types
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import tensorflow as tf

from checkmate_tf.batch_sizes import PLANNED_FROM_NOW_ON, BatchSizes, tell_larger_sizes
from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import arriving_bytes
from checkmate_tf.distribution.strategies import (
    call_together,
    on_all_replicas,
    replica_context,
)
from checkmate_tf.planned_runs import PlannedRuns
from checkmate_tf.planning.compiled.planner import CompiledPlanner
from checkmate_tf.planning.planner import Planner
from checkmate_tf.planning.request import Request
from checkmate_tf.plans.plan import Plan, PlanToCome
from checkmate_tf.program.batch_guard import Sizes, call_if_larger
from checkmate_tf.trace.batched_arguments import Arguments, BatchedArguments
from checkmate_tf.trace.keras_models import (
    attend_training,
    build_metrics,
    build_optimizer,
    forget_functions,
    is_model,
    is_model_class,
    switch_off_xla,
)
from checkmate_tf.trace.sizes import has_unknown_sizes
from checkmate_tf.trace.tracer import Traced, Tracer
from checkmate_tf.user_warnings import users_lines, warn_user
from profiles.tensorflow_internals import (
    a_tape_may_record,
    caller_is_converted,
    compile_mark,
    is_compiled_by_xla,
    is_traced_for_xla,
)
from solvers import BudgetError, CheckmateError


class RematerializedStep:
    """A step that runs by a plan, one for every signature that it is called with.

    Attributes:
        function: the step itself, without a plan.
        plan: of the latest signature; None where nothing could be recomputed. Before the first
            call it says, as text, that it is made then.
        request: what the user asked for.
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
        planner: Planner | CompiledPlanner | None = None,
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
        self._runs = PlannedRuns(
            function, request, self._model, planner, self._note_plan, self.say_once
        )
        self._batches = BatchSizes(request.batch_size)
        self._runs.fit.when_refused = self._batches.forget
        is_traced = isinstance(function, tf.types.experimental.ConcreteFunction)
        self._has_signature = getattr(function, "input_signature", None) is not None
        self._takes_any_batch = not is_traced
        self._batched = BatchedArguments()
        self._lock = threading.RLock()
        self._said: set[str] = set()
        self._of_strategy: dict[int, RematerializedStep] = {}  # they hold their strategies
        self.plan = self._plan_to_come = cast(Any, PlanToCome())
        if self._model is not None and unbound is None:
            attend_training(self._model, RematerializedStep)

    def __set_name__(self, owner: type, name: str) -> None:
        """In a class of models, it attends the training of each of them."""
        if name == "train_step" and is_model_class(owner):
            attend_training(owner, RematerializedStep)

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
        """What is to be done before Keras makes a function of this step.

        XLA is switched off where several replicas train: their step is planned as a whole, and XLA
        would compile the part of each.
        """
        if not is_model(model):
            return
        if model.distribute_strategy.num_replicas_in_sync == 1:
            build_optimizer(model, self.function)
            return
        if switch_off_xla(model):
            self._runs.fit.xla_was_on = compile_mark(model)
            self.say_once(
                "xla-left",
                "this model trains without XLA (jit_compile=False), where steps take longer, "
                "because the step of several replicas can't be planned for XLA",
            )

    def _build_state(self, arguments: Arguments) -> None:
        """Make what Keras' own train step makes when it is first traced, called by itself."""
        model = self._model
        if model is not None and model.distribute_strategy.num_replicas_in_sync == 1:
            args, kwargs = arguments
            build_optimizer(model, self.function)
            build_metrics(model, self.function, *args, *kwargs.values())

    @property
    def xla_was_on(self) -> Any:
        """What marks the `compile` of the model for which XLA was switched off, if any."""
        return self._runs.fit.xla_was_on

    def attend(self) -> None:
        """Be asked about each batch of `fit`: Keras has made a function of this step."""
        self._runs.fit.attend()

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
        if self.plan is self._plan_to_come:
            self._note_plan(None)
        if tf.config.functions_run_eagerly() or getattr(self._model, "run_eagerly", False):
            self.say_once(
                "runs-eagerly", "functions run eagerly: the step runs as it is, without a plan"
            )
            return self.function(*args, **kwargs)
        try:
            context = replica_context()
            if context is not None:
                return self._on_all_replicas(context, args, kwargs)
            arguments = self._tracer.bind(args, kwargs)
            with current_device().as_planned():
                prepare = self._run_for if tf.executing_eagerly() else self._part_for
                return prepare(arguments)(*arguments[0], **arguments[1])
        except Exception as error:
            error.__traceback__ = users_lines(error)
            if isinstance(error, BudgetError) and self._model is None:
                self._batches.forget()
            if isinstance(error, CheckmateError):  # what this package tried before is no news
                error.__suppress_context__ = True
            raise error  # and not `raise`, which brings its lines back in Python 3.10

    def _on_all_replicas(self, context: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The step as it is for one of several replicas, which are planned and run together."""
        if is_compiled_by_xla(self.function) or is_traced_for_xla():
            self.say_once(
                "xla-with-replicas",
                "the step of several replicas is compiled by XLA, for which it can't be planned: "
                "it runs without a plan. To have one, compile the function that calls it with "
                "jit_compile=False",
            )
            return self.function(*args, **kwargs)
        strategy = context.strategy
        with self._lock:
            if id(strategy) not in self._of_strategy:
                function = on_all_replicas(strategy, self.function)
                step = RematerializedStep(function, self.request, self._owner, unbound=self)
                self._of_strategy[id(strategy)] = step
            step = self._of_strategy[id(strategy)]
        result = call_together(context, step, *args, **kwargs)
        self._note_plan(step.plan)
        return result

    def _run_for(self, arguments: Arguments) -> Callable[..., Any]:
        """What runs the step for arguments like these."""
        if self._runs_unplanned(arguments):
            return cast(Callable[..., Any], self._tracer.traced().function)
        batch = self._batched.batch_of(arguments, self._batches.planned)
        self._batches.note(None if batch is None else batch.shape[0])
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
            "traced-size-by-size",
            "the step can't be traced for batches of any size, so each size gets a trace and "
            f"a plan of its own: {reason}",
        )
        return run

    def _run_of(
        self, traced: Traced, kinds: Arguments, arguments: Arguments, places: frozenset[int]
    ) -> Callable[..., Any]:
        """What runs the step for arguments of these kinds, of which `arguments` are some."""
        begun = time.perf_counter()
        self._build_state(arguments)
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
                    traced.runs[key] = self._runs.alone(
                        concrete, batch_size, arriving_bytes(arguments), seconds
                    )
        return traced.runs[key]

    def _runs_unplanned(self, arguments: Arguments) -> bool:
        """Whether no plan would help, or none can be made; which is said."""
        if a_tape_may_record():
            self.say_once(
                "under-a-tape",
                "the step is called under a tf.GradientTape, which keeps all that a gradient "
                "through the step may need, whatever the plan: the step runs without one. Call it "
                "outside of the tape, or rematerialize the function that holds the tape",
            )
            return True
        for each in tf.nest.flatten(arguments):
            if isinstance(each, tf.RaggedTensor | tf.SparseTensor):
                self.say_once(
                    "argument-of-unknown-size",
                    f"an argument of the step is a {type(each).__name__}, whose size depends on "
                    "its values, so that memory can't be planned: the step runs without a plan. "
                    "To have one, make the argument dense before the step, with "
                    "to_tensor(shape=…) or tf.sparse.to_dense",
                )
                return True
        return False

    def _part_for(self, arguments: Arguments) -> Callable[..., Any]:
        """What makes the step a part of the function that is being traced."""
        # `fit` calls a model's step as it is.
        convert = self._model is None or caller_is_converted()
        if self._runs_unplanned(arguments):
            traced = self._tracer.trace_anew(arguments, frozenset(), convert)
            return cast(Callable[..., Any], traced)
        batch = self._batched.batch_of(arguments, self._batches.planned)
        tensors = [each for each in tf.nest.flatten(arguments) if isinstance(each, tf.Tensor)]
        place = next((place for place, each in enumerate(tensors) if each is batch), None)
        seen = self._runs.fit.sizes_seen(tensors)
        seen_size = None if seen is None or place is None else seen[place][0]
        self._batches.note(seen_size if batch is None else batch.shape[0] or seen_size)
        begun = time.perf_counter()
        concrete = self._tracer.trace_anew(
            arguments, self._batched.places(arguments, self._batches.planned), convert
        )
        tracing = time.perf_counter() - begun
        size = self._batches.planned if self._batches.planned is not None else self._batches.largest
        if size is None or all(each.shape.is_fully_defined() for each in tensors):
            return self._runs.part(concrete, size, tracing, None)
        if seen is None or place is None:
            guard = partial(call_if_larger, [batch], [(size,)], self._larger_batch_came)
            return self._runs.part(concrete, size, tracing, guard)
        # What is as long as the batch may get as long as the user said.
        sizes = tuple((size, *each[1:]) if each[:1] == (seen_size,) else each for each in seen)
        came = partial(self._larger_sizes_came, place)
        return self._runs.part(
            concrete, sizes, tracing, partial(call_if_larger, tensors, sizes, came)
        )

    def _note_plan(self, plan: Plan | None) -> None:
        self.plan = plan
        self._plan_to_come.has_come(plan)

    def _larger_batch_came(self, found: Sizes) -> None:
        """A step that is part of a larger function met a batch that it was not planned for."""
        again = PLANNED_FROM_NOW_ON
        if self._model is None:
            again = "trace the function that calls the step again to have it planned for it"
        ((size,),) = found
        if self._batches.note_inside(size, again) and self._model is not None:
            forget_functions(self._model)

    def _larger_sizes_came(self, place: int, found: Sizes) -> None:
        """`fit` gave larger tensors than it had given before; the one at `place` is the batch."""
        self._runs.fit.note_sizes(tuple(map(tuple, found)))
        if not self._batches.note_inside(found[place][0], PLANNED_FROM_NOW_ON):
            tell_larger_sizes(found)
        forget_functions(self._model)

    def say_once(self, code: str, message: str) -> None:
        """Warn the user, if this has not been said of this step before."""
        if message not in self._said:
            self._said.add(message)
            warn_user(code, message)


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
