"""`rematerialize`: the decorator, its arguments, and what it refuses to decorate."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, overload

from checkmate_tf.attaching import attach, keep_with_copies
from checkmate_tf.graph.cost_models import DEFAULT_COSTS
from checkmate_tf.planning.request import OnInfeasible, Request, parse_request
from checkmate_tf.plans.plan import Plan
from checkmate_tf.step import RematerializedStep
from checkmate_tf.trace.keras_models import forget_functions, is_model, models_of
from checkmate_tf.trace.no_steps import why_no_step
from profiles.profile import Profile
from solvers import CheckmateError, parse_budget
from solvers.problem import Order


@overload
def rematerialize(
    function: Callable[..., Any],
    *,
    budget: int | float | str | None = ...,
    solver: str = ...,
    batch_size: int | None = ...,
    costs: str | Profile = ...,
    time_limit: float = ...,
    order: Order = ...,
    trial_run: bool = ...,
    on_infeasible: OnInfeasible = ...,
    plan: Plan | str | os.PathLike[str] | None = ...,
    verbose: int = ...,
) -> RematerializedStep: ...


@overload
def rematerialize(
    function: None = None,
    *,
    budget: int | float | str | None = ...,
    solver: str = ...,
    batch_size: int | None = ...,
    costs: str | Profile = ...,
    time_limit: float = ...,
    order: Order = ...,
    trial_run: bool = ...,
    on_infeasible: OnInfeasible = ...,
    plan: Plan | str | os.PathLike[str] | None = ...,
    verbose: int = ...,
) -> Callable[[Callable[..., Any]], RematerializedStep]: ...


def rematerialize(
    function: Callable[..., Any] | None = None,
    *misplaced: Any,
    budget: int | float | str | None = None,
    solver: str = "auto",
    batch_size: int | None = None,
    costs: str | Profile = DEFAULT_COSTS,
    time_limit: float = 60.0,
    order: Order = "free",
    trial_run: bool = True,
    on_infeasible: OnInfeasible = "error",
    plan: Plan | str | os.PathLike[str] | None = None,
    verbose: int = 1,
) -> Any | Callable[[Callable[..., Any]], RematerializedStep]:
    """Make a train step recompute activations rather than keep them, within a budget.

    The first call traces the step, finds a schedule, makes a trial run and runs it; later calls
    just run. The results are those of the step itself. It costs time: `step.plan` says how much.
    Where XLA compiles the step, the plan is one that XLA keeps, and the compiler confirms it.

    Use it on a Keras model, which it returns: `fit`, `train_on_batch` and a later `compile` work
    as before, `model.train_step.plan` is the plan, and `checkmate_tf.restore` takes the budget off.
    Or use it as a decorator of a Keras `train_step` or of a free function, or as a function. The
    step may do everything (forward, backward, optimizer, metrics) or return (loss, gradients).

    Args:
        function: the step, or a Keras model.
        misplaced: nothing; every other argument has a name.
        budget: bytes ("4GiB", 4294967296) for everything that the device holds at any moment:
            variables, optimizer slots, inputs and activations; of several replicas, each has this
            budget. Or a share (0.5, "50%"):
            budget = resident + share × (unchanged peak − resident), where resident is what
            the device holds before the step, and the peak is measured if the unchanged step can
            run for trial, else forecast. Or "min", the least found. Or, by default, "device": what
            the device can hold; where the unchanged step fits, it runs unchanged.
        solver: a name from `checkmate-tf solvers`.
        batch_size: the largest batch, where the step is traced for batches of any size. `fit` tells
            it by its first batches; of several replicas, it is the batch that each of them gets.
        costs: "device", what stored profiles know and how fast this device computes and moves
            memory, which takes a second or two to measure, once; "profile", which measures the
            step's operations, each once; "roofline" or "flops", which measure nothing; or a
            profile that `checkmate_tf.load_profile` returned; or "roofline:GPU" (CPU, TPU) for
            the costs of another kind of device.
        time_limit: seconds for the solver.
        order: "free" also looks for a better order of the operations; "fixed" keeps it.
        trial_run: measure the plan before training begins, on made-up inputs and copies of the
            variables, and correct it until its peak is within the budget. The first ten steps
            of training are measured too, and all batches of `fit`. If one takes more than the
            budget, a warning says so and the next one runs by a leaner plan, unless it draws
            numbers with `tf.random.*` and a seed. Later on a step over the budget is said.
        on_infeasible: what happens if no plan is found within the budget: "error", or, with a
            warning, "min" runs the leanest plan found and "plain" the step without a plan.
        plan: a plan, or the file of one, that `step.plan.save` or `checkmate-tf plan` wrote for
            this step; then nothing is searched for or tried, and no budget need be given. Without
            it a plan that was kept for such a step is taken; see docs/plans.md.
        verbose: 0 is silent; 1 shows on a terminal and in a notebook where planning is, and says
            in one line what came out; 2 says besides, also where nobody watches, how long each
            phase took, and what was seen of each candidate plan.

    Raises:
        BudgetError: the budget is not a size, or (at the first call) is too small.
        SolverError: no such solver.
        CheckmateError: another argument is not what it should be; or, at the first call, shapes are
            unknown, the plan is of another step, XLA can't compile the step by itself, or a
            strategy runs it that is not covered, or that is compiled by XLA.

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
    if misplaced:
        raise CheckmateError("argument-unnamed", _named(misplaced[0]))
    request = parse_request(
        budget,
        solver,
        batch_size,
        costs,
        time_limit,
        order,
        trial_run,
        on_infeasible,
        plan,
        verbose,
    )
    if function is None:
        return lambda step: _decorated(step, request, is_decorator=True)
    return _decorated(function, request)


def _named(value: Any) -> str:
    """What to write instead of an argument that has no name."""
    try:
        parse_budget(value)
    except CheckmateError:
        return f"{value!r} needs a name, as all but the step do: rematerialize(step, budget=…)"
    return f"write budget={value!r}: all arguments but the step have a name"


def _decorated(function: Any, request: Request, is_decorator: bool = False) -> Any:
    if is_model(function):
        return attach(function, request)
    if isinstance(function, type):
        raise CheckmateError(
            "not-a-step",
            f"{function.__name__!r} is a class: decorate the method that trains, or give an object",
        )
    if why := why_no_step(function):
        raise CheckmateError("not-a-step", why)
    if not callable(function) and not hasattr(function, "__get__"):
        instead = "give the function of a train step"
        if is_decorator:  # of None
            instead += "; model.train_function, None before fit, is none: give the model itself"
        raise CheckmateError("not-a-step", f"{function!r} can't be called; {instead}")
    if isinstance(function, RematerializedStep):  # as when a cell of a notebook runs again
        function = function.function
    if isinstance(function, classmethod):
        raise CheckmateError(
            "not-a-step",
            f"{function.__name__!r} is no step yet when rematerialize sees it: write @classmethod "
            "above @rematerialize, not below",
        )
    for model in models_of(function):
        forget_functions(model)
        keep_with_copies(model)
    return RematerializedStep(function, request)
