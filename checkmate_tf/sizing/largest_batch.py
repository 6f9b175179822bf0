"""`largest_batch`: the largest batch of a train step that fits some bytes, and its plan."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from checkmate_tf.batches.compiled import CompiledPlans, compiled_question
from checkmate_tf.batches.examples import ExampleBatch
from checkmate_tf.batches.plans import GivenUp, NoBatchError
from checkmate_tf.batches.question import Asked, question_of
from checkmate_tf.batches.search import Answer, search
from checkmate_tf.batches.sized_step import SizedStep
from checkmate_tf.batches.tried import TriedPlans
from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.graph.cost_models import known_workspaces
from checkmate_tf.graph.extraction import extract_program
from checkmate_tf.interrupts import Interrupts, noted_interrupts
from checkmate_tf.planning.compiled.planner import CompiledPlanner
from checkmate_tf.planning.planner import Planner
from checkmate_tf.planning.preparation import device_workspaces
from checkmate_tf.planning.request import parse_request
from checkmate_tf.plans.plan import Plan
from checkmate_tf.progress import spoken_progress
from checkmate_tf.sizing.arguments import (
    Target,
    parse_batch,
    parse_bytes,
    parse_costs,
    parse_overhead,
    parse_step,
    why_not_here,
)
from checkmate_tf.sizing.one_trace import traced_with
from checkmate_tf.sizing.result import LargestBatch
from checkmate_tf.sizing.without_xla import say_it_is_compiled_elsewhere, say_it_leaves_xla
from checkmate_tf.step import RematerializedStep
from checkmate_tf.trace.inputs import argument_placeholders
from checkmate_tf.trace.keras_models import forget_functions, models_of
from profiles.devices import default_device
from profiles.measure.compilation import NotCompilableError
from profiles.profile import Profile
from solvers import CheckmateError, ComputationGraph, format_bytes
from solvers.graph.bounds import memory_bound
from solvers.problem import Order

_BATCHES_OF_FIT = 3
"""Batches that `fit` holds on any device when it plans: two are looked at, and one is to come."""


def largest_batch(
    step: Any,
    budget: int | float | str | None = None,
    batch: Any = None,
    *,
    overhead: float | str | None = None,
    device_memory: int | str | None = None,
    costs: str | Profile | None = None,
    order: Order = "free",
    time_limit: float = 60.0,
    trial_run: bool = True,
) -> LargestBatch:
    """The largest batch that trains within some bytes and some extra time.

    It is searched for on the step's graph, whose sizes are affine in the batch (Jain et al.,
    MLSys 2020, equation 10), and planned in full at the size found: forecast, tried on this
    device, and made smaller until the plan holds. Larger ones may exist that were not found.
    Plans of a step that XLA compiles, as Keras' models are on a GPU, are compiled instead of tried.

    Args:
        step: a function, a compiled Keras model, or what `rematerialize` returned.
        budget: bytes ("16GiB") for everything that the device holds at any moment.
        batch: an example of what the step is called with: a tuple is its positional arguments,
            all else its only one; for a Keras model the data as `fit` takes them, (x, y).
            Arrays, tensors and `tf.TensorSpec`s in any structure, or a `tf.data.Dataset` of
            batches. What is as long as the first array grows with the batch; or, where there
            are `tf.TensorSpec((None, …))`, these alone. No values are looked at. Not needed
            where the step has an input_signature, nor for a Keras model that tells its inputs.
        overhead: extra time that a step may take, as a share (0.2, "20%"); by default, that of
            one more forward pass.
        device_memory: bytes of a device that is not there. Nothing runs then, and XLA is left
            out, which a warning says; `budget` may be left out, or be a share of it ("90%").
        costs: as for `rematerialize`; for another device "roofline" (the default there),
            "roofline:GPU" (or CPU, TPU), "flops", or `load_profile(path, other_device=True)`.
        order: "free" also looks for a better order of the operations; "fixed" keeps it.
        time_limit: seconds for the search on the graph, and for each of at most five plans.
        trial_run: try the plan on this device.

    Raises:
        BudgetError: the budget is too small for a batch of 1, or no number of bytes.
        CheckmateError: sizes don't grow with the batch, or an argument is not what it should be.

    Example:
        >>> import tensorflow as tf
        >>> w = tf.Variable(tf.random.normal((256, 256)) / 16)
        >>> def loss_and_gradient(x):
        ...     with tf.GradientTape() as tape:
        ...         for _ in range(12):
        ...             x = tf.tanh(x @ w)
        ...         loss = tf.reduce_sum(x)
        ...     return loss, tape.gradient(loss, w)
        >>> found = largest_batch(
        ...     loss_and_gradient,
        ...     batch=tf.TensorSpec((None, 256)),
        ...     device_memory="96MiB",
        ...     time_limit=1,
        ... )
        >>> found.batch_size > found.unchanged > 0 and found.plan.overhead <= found.most_overhead
        True
    """
    target = parse_step(step)
    size = parse_bytes(budget, device_memory)
    is_compiled = target.is_compiled and device_memory is None
    # What XLA compiles does not run, so that it need not fit.
    not_here = "" if is_compiled else why_not_here(device_memory, size)
    costs = parse_costs(costs, not_here)
    request = parse_request(size, "auto", None, costs, time_limit, order, trial_run)
    example = parse_batch(batch, target)
    if target.is_compiled and not is_compiled:
        say_it_is_compiled_elsewhere()
    asked = Asked(
        request=request,
        budget=size,
        overhead=parse_overhead(overhead),
        held=0 if not_here else held_bytes() or 0,
        batches=(
            1
            if not_here or target.model is None
            else max(_BATCHES_OF_FIT, current_device().batches_held())
        ),
        workspace=(
            known_workspaces(costs)
            if not_here or is_compiled
            else device_workspaces(default_device())
        ),
        not_here=not_here,
        first=example.size if example else None,
    )
    with noted_interrupts() as interrupts:
        try:
            found = _Sizing(target, example, asked, is_compiled, interrupts).run()
        except NotCompilableError as error:
            say_it_leaves_xla(error)
            here = replace(asked, not_here=why_not_here(device_memory, size))
            found = _Sizing(target, example, here, False, interrupts).run()
        interrupts.pass_on()
        return found


class _Sizing:
    """One question from beginning to end: sizes, search on the graph, plans in full."""

    def __init__(
        self,
        target: Target,
        example: ExampleBatch | None,
        asked: Asked,
        is_compiled: bool,
        interrupts: Interrupts,
    ) -> None:
        self.target = target
        self.is_compiled = is_compiled
        self.example = example
        self.asked = asked
        self.interrupts = interrupts
        self.planner: Any = Planner(asked.request)

    def run(self) -> LargestBatch:
        with spoken_progress("largest batch:") as show:
            show("tracing the step")
            trace = partial(traced_with, self.target, compiled=self.is_compiled)
            self.sized = SizedStep(trace, self.example)
            show("sizes of its tensors")
            self.question, _, notes = question_of(self.sized, self.asked, self.interrupts.pass_on)
            if self.is_compiled:  # it is the compiler who says what is taken
                show("compiling the step as it is")
                self.planner = CompiledPlanner(self.asked.request)
                self.question = compiled_question(
                    self.question, self.sized, self.asked, self.planner, self.interrupts
                )
            answer = search(
                self.question,
                lambda size, beyond: show(f"at least {size}, less than {beyond}"),
                self.interrupts.pass_on,
            )
            if not answer.size and not self.is_compiled:
                raise self._too_small(self.question.graph.at(1))
            plans = (CompiledPlans if self.is_compiled else TriedPlans)(
                self.sized, self.asked, self.question, self.planner, self.interrupts, show
            )
            size, plan, given_up = plans.largest(answer)
        return self._result(size, plan, given_up, answer, notes)

    def _impossible(self, answer: Answer) -> int | None:
        """The least batch that no schedule fits, seen at its real sizes; None if that fails.

        Compiled by XLA a step may hold less than a schedule does.

        Between two known sizes those of the graph may be a little too large.
        """
        size = answer.impossible
        if self.is_compiled:
            return None
        try:
            graph = extract_program(self.sized.program(size)).graph
        except CheckmateError:
            return None
        bound = memory_bound(graph, self.asked.request.order)
        beside = max(0, self.question.held(size) - graph.fixed_bytes)
        return size if bound + beside > self.asked.budget else None

    # What is said.

    def _result(
        self, size: int, plan: Plan, given_up: GivenUp, answer: Answer, notes: tuple[str, ...]
    ) -> LargestBatch:
        step = None
        if not self.asked.not_here:
            request = replace(self.asked.request, batch_size=size)
            for model in models_of(self.target.function):
                forget_functions(model)  # else `fit` would go on with the step that it has
            step = RematerializedStep(self.target.function, request, planner=self.planner)
        grows, stays = self._arguments()
        return LargestBatch(
            batch_size=size,
            unchanged=min(answer.unchanged, size),
            plan=plan,
            most_overhead=self.asked.most_overhead(plan.graph),
            allowed="one more forward pass" if self.asked.overhead is None else "as asked for",
            beyond=given_up.size,
            why=given_up.why,
            impossible=self._impossible(answer),
            grows=grows,
            stays=stays,
            confirmation=self._confirmation(plan),
            step=step,
            notes=tuple(dict.fromkeys((*notes, *plan.notes))),
        )

    def _arguments(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of what grows with the batch, and of the arrays that don't."""
        if self.example is not None:
            return self.example.growing, self.example.staying
        names: dict[bool, list[str]] = {True: [], False: []}
        for each in argument_placeholders(self.sized.concrete(1)):
            names[not each.shape.is_fully_defined()].append(each.op.name)
        return tuple(names[True]), tuple(names[False])

    def _confirmation(self, plan: Plan) -> str:
        if plan.compiled_peak is not None:
            return f"compiled: it says that {format_bytes(plan.compiled_peak)} will be held"
        if plan.measured_peak is not None:
            return f"confirmed: at most {format_bytes(plan.measured_peak)} were held"
        reason = self.asked.not_here
        if not reason:
            reason = (
                "none was possible here" if self.asked.request.trial_run else "none was asked for"
            )
        return f"not confirmed by a trial run: {reason}"

    def _too_small(self, graph: ComputationGraph) -> NoBatchError:
        beside = max(0, self.question.held(1) - graph.fixed_bytes)
        bound = memory_bound(graph, self.asked.request.order) + beside
        budget = format_bytes(self.asked.budget, bound)
        held = f"{format_bytes(graph.fixed_bytes + beside)} are variables, inputs and what is held"
        if bound > self.asked.budget:
            why = f"no schedule exists below {format_bytes(bound, self.asked.budget)}"
        else:
            why = "no schedule was found that is lean enough at so little extra time; give more "
            why += "bytes, or a larger overhead"
        return NoBatchError(
            "budget-too-small", f"budget {budget} is too small for a batch of 1: {held}, and {why}"
        )
