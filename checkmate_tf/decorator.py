"""`rematerialize`: a train step that stays within a memory budget."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, overload
from weakref import WeakKeyDictionary

import tensorflow as tf

from checkmate_tf.cost_models import check_cost_model
from checkmate_tf.measure import held_bytes
from checkmate_tf.plan import Plan
from checkmate_tf.planning import PlannedStep, Request, plan_step
from checkmate_tf.rehearsal import has_generators
from checkmate_tf.rewriting import rewrite_extracted
from checkmate_tf.user_warnings import warn_user
from checkmate_tf.watching import WatchedStep
from profiles.profile import Profile
from solvers import Budget, CheckmateError, find_solver, parse_budget
from solvers.solution import Order


@overload
def rematerialize(
    function: Callable[..., Any],
    *,
    budget: int | float | str,
    solver: str = ...,
    batch_size: int | None = ...,
    costs: str | Profile = ...,
    time_limit: float = ...,
    order: Order = ...,
    rehearse: bool = ...,
) -> RematerializedStep: ...


@overload
def rematerialize(
    function: None = None,
    *,
    budget: int | float | str,
    solver: str = ...,
    batch_size: int | None = ...,
    costs: str | Profile = ...,
    time_limit: float = ...,
    order: Order = ...,
    rehearse: bool = ...,
) -> Callable[[Callable[..., Any]], RematerializedStep]: ...


def rematerialize(
    function: Callable[..., Any] | None = None,
    *,
    budget: int | float | str,
    solver: str = "auto",
    batch_size: int | None = None,
    costs: str | Profile = "roofline",
    time_limit: float = 60.0,
    order: Order = "free",
    rehearse: bool = True,
) -> RematerializedStep | Callable[[Callable[..., Any]], RematerializedStep]:
    """Make a train step compute activations again rather than keep them, within a budget.

    The first call traces the step, finds a schedule, rehearses it and runs it; later calls just
    run. The results are those of the step itself. It costs time: `step.plan` says how much.

    Use it as a decorator of a Keras `train_step` or of a free function, or as a function. The
    step may do everything (forward, backward, optimizer, metrics) or return (loss, gradients).

    Args:
        function: the step.
        budget: bytes ("4GiB", 4294967296) for everything that the device holds at any moment,
            variables, optimizer slots, inputs and activations; a share (0.5, "50%") of what
            the unchanged step adds to what is held before it; or "min", the least found.
        solver: a name from `checkmate-tf solvers`.
        batch_size: the largest batch, where the step is traced for batches of any size, as
            `fit(x, y)` does.
        costs: "roofline", "flops", or "profile", which measures the step's operations on this
            device and keeps what it saw for the next time; or a profile that
            `checkmate_tf.load_profile` returned.
        time_limit: seconds for the solver.
        order: "free" also looks for a better order of the operations; "fixed" keeps it.
        rehearse: run the plan on made-up inputs and look at the allocator before training begins;
            it works on copies of the variables. The plan is corrected until its peak is in
            budget. The first ten steps of training are looked at too, unless they run inside
            `fit` or draw numbers with `tf.random.*`; should one take more than the budget, a
            warning says so and the next one runs by a leaner plan.

    Raises:
        BudgetError: the budget is not a size, or (at the first call) is too small.
        SolverError: no such solver.
        CheckmateError: at the first call: unknown shapes, or `jit_compile=True`.

    Example:
        >>> import tensorflow as tf
        >>> import checkmate_tf
        >>> w = tf.Variable(tf.random.normal((256, 256)) / 16)
        >>> @checkmate_tf.rematerialize(budget=0.7, time_limit=10)
        ... def loss_and_gradient(x):
        ...     with tf.GradientTape() as tape:
        ...         for _ in range(12):
        ...             x = tf.tanh(x @ w)
        ...         loss = tf.reduce_sum(x)
        ...     return loss, tape.gradient(loss, w)
        >>> loss, gradient = loss_and_gradient(tf.ones((1024, 256)))
        >>> loss_and_gradient.plan.predicted_peak < loss_and_gradient.plan.baseline_peak
        True
    """
    request = Request(
        budget=parse_budget(budget),
        solver=find_solver(solver).name,
        batch_size=batch_size,
        costs=costs,
        time_limit=time_limit,
        order=order,
        rehearse=rehearse,
    )
    check_cost_model(costs)
    if function is None:
        return lambda step: RematerializedStep(step, request)
    return RematerializedStep(function, request)


class RematerializedStep:
    """A step that runs by a plan, one for every signature that it is called with.

    Attributes:
        plan: of the latest signature; None before the first call, and where nothing could be
            computed again.
    """

    plan: Plan | None

    def __init__(self, function: Callable[..., Any], request: Request) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._request = request
        self._runs: dict[str, Callable[..., Any]] = {}
        self._bound: WeakKeyDictionary[Any, RematerializedStep] = WeakKeyDictionary()
        self.plan = None

    def __get__(self, instance: Any, owner: type | None = None) -> RematerializedStep:
        """As methods do: the step of one model."""
        if instance is None:
            return self
        if instance not in self._bound:
            method = functools.partial(self._function, instance)
            functools.update_wrapper(method, self._function)
            step = RematerializedStep(method, self._request)
            step._owner = instance
            self._bound[instance] = step
        return self._bound[instance]

    _owner: Any = None

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the step; plan it first where it has not been called like this before."""
        leaves = tf.nest.flatten((args, kwargs), expand_composites=True)
        leaves = [tf.convert_to_tensor(each) if _is_array(each) else each for each in leaves]
        tensors = [each for each in leaves if isinstance(each, tf.Tensor)]
        key = _signature_text((args, kwargs), leaves, self._request.batch_size)
        if key not in self._runs:
            self._runs[key] = self._prepare((args, kwargs), leaves)
        return self._runs[key](*tensors)

    def _prepare(self, structure: Any, leaves: list[Any]) -> Callable[..., Any]:
        """Trace, plan and rewrite the step for arguments like `leaves`."""
        _refuse_compilation(self._function, self._owner)
        function: Any = self._function
        autograph = True
        if hasattr(function, "python_function"):
            autograph = function._autograph
            function = function.python_function
        static = [None if isinstance(each, tf.Tensor) else each for each in leaves]
        is_tensor = [isinstance(each, tf.Tensor) for each in leaves]

        def flat_step(*tensors: Any) -> Any:
            given = iter(tensors)
            filled = [
                next(given) if tensor else value
                for tensor, value in zip(is_tensor, static, strict=True)
            ]
            args, kwargs = tf.nest.pack_sequence_as(structure, filled, expand_composites=True)
            return function(*args, **kwargs)

        specs = [
            _spec(each, self._request.batch_size) for each in leaves if isinstance(each, tf.Tensor)
        ]
        traced = tf.function(flat_step, autograph=autograph)
        concrete: Callable[..., Any] = traced.get_concrete_function(*specs)
        planned = self._planned(concrete, self._request)
        if planned is None:
            warn_user(
                f"nothing in {getattr(function, '__name__', function)!r} can be computed again; "
                "it runs unchanged"
            )
            return concrete
        step = _rewritten(planned)
        if not self._request.rehearse or self._request.budget.least or held_bytes() is None:
            return step
        if has_generators(planned.extracted):  # another step would draw the same numbers again
            return step
        request = replace(self._request, budget=Budget(bytes=planned.plan.budget))

        def leaner(margin: int) -> Callable[..., Any]:
            leaner_one = self._planned(concrete, request, margin)
            return concrete if leaner_one is None else _rewritten(leaner_one)

        return WatchedStep(step, planned.plan.budget, leaner)

    def _planned(self, concrete: Any, request: Request, margin: int = 0) -> PlannedStep | None:
        planned = plan_step(concrete, request, margin)
        if planned is not None:
            self.plan = planned.plan
        return planned


def _rewritten(planned: PlannedStep) -> Callable[..., Any]:
    return rewrite_extracted(planned.extracted, planned.plan.schedule, planned.function)


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") and not isinstance(value, tf.Tensor | tf.Variable)


def _spec(tensor: Any, batch_size: int | None) -> tf.TensorSpec:
    """The type that a tensor is traced with: batches up to `batch_size` share one trace."""
    shape = tensor.shape
    if batch_size is not None and shape.rank and (shape[0] is None or shape[0] <= batch_size):
        shape = tf.TensorShape([None, *shape[1:]])
    return tf.TensorSpec(shape, tensor.dtype)


def _signature_text(structure: Any, leaves: list[Any], batch_size: int | None) -> str:
    described = [
        _spec(each, batch_size) if isinstance(each, tf.Tensor) else ("static", each)
        for each in leaves
    ]
    shape = tf.nest.map_structure(lambda leaf: 0, structure, expand_composites=True)
    return repr((shape, described))


def _refuse_compilation(function: Any, owner: Any) -> None:
    """XLA schedules for itself and ignores the order that saves memory."""
    owner = owner if owner is not None else getattr(function, "__self__", None)
    if getattr(function, "_jit_compile", None) or getattr(owner, "jit_compile", False) is True:
        raise CheckmateError(
            "the step is compiled by XLA, which undoes rematerialization: compile the model with "
            "model.compile(…, jit_compile=False), or the function with "
            "tf.function(jit_compile=False)"
        )
