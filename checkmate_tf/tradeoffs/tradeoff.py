"""`tradeoff`: what each budget costs in extra time, before any training."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

import tensorflow as tf

from checkmate_tf.devices.measure import arriving_bytes
from checkmate_tf.phases import phase, stopwatch
from checkmate_tf.planning.budget_sweep import Sweep, swept
from checkmate_tf.planning.compiled.sweep import swept_compiled
from checkmate_tf.planning.request import Request, parse_request
from checkmate_tf.sizing.arguments import ELSEWHERE, Target, parse_costs, parse_step
from checkmate_tf.sizing.one_trace import traced_for
from checkmate_tf.sizing.without_xla import say_it_is_compiled_elsewhere, say_it_leaves_xla
from checkmate_tf.trace.sizes import has_unknown_sizes
from checkmate_tf.tradeoffs.result import Tradeoff
from profiles.measure.compilation import NotCompilableError
from profiles.profile import Profile
from solvers import CheckmateError
from solvers.problem import Order


def tradeoff(
    step: Any,
    *example: Any,
    points: int = 9,
    batch_size: int | None = None,
    costs: str | Profile | None = None,
    solver: str = "auto",
    order: Order = "free",
    time_limit: float = 60.0,
    trial_run: bool = False,
    elsewhere: bool = False,
) -> Tradeoff:
    """Budget against extra time, from what the unchanged step needs down to the least found.

    Nothing is trained, and no variable changes. Every point is a plan that can be taken:
    `rematerialize(step, plan=result[3].plan)`. Ctrl-C gives the points that are known so far.

    Of a step that XLA compiles, as Keras' models are on a GPU, each plan is compiled once, and its
    peak and budget are what the compiler says.

    Args:
        step: a function, a compiled Keras model, or what `rematerialize` returned.
        example: what the step is called with; for a Keras model the data as `fit` takes them:
            (x, y), or x and y. Arrays, tensors and `tf.TensorSpec`s, or a `tf.data.Dataset` of
            batches. No values are looked at. Not needed where the step has an input_signature.
        points: how many budgets, in even steps; of a step that XLA compiles, how many plans.
        batch_size: the largest batch that occurs, where there are several, as the smaller last
            one of an epoch; by default that of the example, and no other.
        costs: as for `rematerialize`; for another device "roofline" (the default there),
            "roofline:GPU" (or CPU, TPU), "flops", or `load_profile(path, other_device=True)`.
        solver: its name; the least memory is looked for by "auto".
        order: "free" also looks for a better order of the operations; "fixed" keeps it.
        time_limit: seconds for all searches together.
        trial_run: let the unchanged step run for trial, on copies of the variables, and each plan
            of the answer, which is corrected by what they hold. Else peaks are a forecast. A step
            that XLA compiles doesn't run: the compiler says what it takes.
        elsewhere: plan for a device that holds nothing but the step; nothing runs on this one, and
            XLA is left out, which a warning says.

    Raises:
        BudgetError: every plan found exhausts the device's memory.
        CheckmateError: nothing in the step can be recomputed, several replicas run it, or an
            argument is not what it should be.

    Example:
        >>> import tensorflow as tf
        >>> w = tf.Variable(tf.random.normal((256, 256)) / 16)
        >>> def loss_and_gradient(x):
        ...     with tf.GradientTape() as tape:
        ...         for _ in range(12):
        ...             x = tf.tanh(x @ w)
        ...         loss = tf.reduce_sum(x)
        ...     return loss, tape.gradient(loss, w)
        >>> result = tradeoff(loss_and_gradient, tf.ones((1024, 256)), points=4, time_limit=2)
        >>> extra = [point.overhead for point in result]
        >>> len(extra), extra[0], extra == sorted(extra)
        (4, 0.0, True)
    """
    is_count = isinstance(points, Integral) and not isinstance(points, bool)
    if not (is_count and points >= 2):
        raise CheckmateError(
            "argument-invalid", f"points is {points!r}; give a whole number, 2 or more"
        )
    costs = parse_costs(costs, ELSEWHERE if elsewhere else "")
    request = parse_request("100%", solver, batch_size, costs, time_limit, order, trial_run)
    target = parse_step(step)
    is_compiled = target.is_compiled and not elsewhere
    if target.is_compiled and elsewhere:
        say_it_is_compiled_elsewhere()
    with stopwatch():
        try:
            sweep = _swept(target, example, request, int(points), elsewhere, is_compiled)
        except NotCompilableError as error:
            say_it_leaves_xla(error)
            sweep = _swept(target, example, request, int(points), elsewhere, is_compiled=False)
    return Tradeoff(sweep.plans, sweep.impossible, sweep.asked, sweep.stopped)


def _swept(
    target: Target,
    example: tuple[Any, ...],
    request: Request,
    points: int,
    elsewhere: bool,
    is_compiled: bool,
) -> Sweep:
    with phase("trace"):
        batch = _example(target, example)
        concrete = traced_for(target, batch, request.batch_size, is_compiled)
    arrays = [each for each in tf.nest.flatten(example) if hasattr(each, "shape")]
    if request.batch_size is None and has_unknown_sizes(concrete):
        shapes = (tf.TensorShape(each.shape) for each in arrays)
        first = next((shape[0] for shape in shapes if shape.rank), None)
        request = replace(request, batch_size=first)
    # What `fit` calls the step with, it has several of.
    are_here = arrays and not any(isinstance(each, tf.TensorSpec) for each in arrays)
    arriving = arriving_bytes(arrays) if are_here and target.model is None else None
    if is_compiled:
        return swept_compiled(concrete, request, points, arriving)
    return swept(concrete, request, points, arriving, elsewhere)


def _example(target: Target, example: tuple[Any, ...]) -> Any:
    """The example as `largest_batch` takes it; None where there is none."""
    function = target.function
    says_it = hasattr(function, "structured_outputs") or (
        getattr(function, "input_signature", None) is not None
    )
    if not example and target.model is not None:
        raise CheckmateError(
            "argument-missing", "an example batch is missing: give the data as `fit` takes them"
        )
    if not example and says_it:
        return None
    is_one = len(example) == 1 and (
        target.model is not None or isinstance(example[0], tf.data.Dataset)
    )
    return example[0] if is_one else example
