"""A batch for which no plan fits the device: what is said names the largest one that trains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

from checkmate_tf.batches.examples import example_batch
from checkmate_tf.batches.pieces import in_pieces
from checkmate_tf.batches.plans import NoBatchError
from checkmate_tf.batches.question import Asked, question_of
from checkmate_tf.batches.search import search
from checkmate_tf.batches.sized_step import SizedStep
from checkmate_tf.batches.tried import TriedPlans
from checkmate_tf.devices.current import current_device
from checkmate_tf.devices.measure import held_bytes
from checkmate_tf.interrupts import noted_interrupts
from checkmate_tf.phases import phase
from checkmate_tf.planning.apart import apart
from checkmate_tf.planning.device_budget import for_device
from checkmate_tf.planning.planner import Planner
from checkmate_tf.planning.preparation import device_workspaces
from checkmate_tf.planning.request import Request
from checkmate_tf.plans.plan import Plan
from checkmate_tf.progress import say
from checkmate_tf.trace.inputs import argument_placeholders
from checkmate_tf.trace.sizes import ArgumentSizes, has_unknown_sizes
from checkmate_tf.trace.tracer import Tracer
from profiles.devices import default_device
from solvers import BudgetError, CheckmateError, format_bytes

_SECONDS = 15.0
"""For the search on the graph, and for each plan, at most: the user waits for an error."""

_AIM = 0.92
"""Share of what the device can hold that the batch is looked for in: at its limit what is free lies
in pieces, and each plan that is tried and does not fit takes ten seconds on a GPU."""


def largest_instead(
    error: BudgetError,
    function: Callable[..., Any],
    model: Any,
    concrete: Any,
    sizes: ArgumentSizes | None,
    request: Request,
    batches: int,
) -> BudgetError:
    """The error about a batch that is too large for the device, with the largest that trains.

    Args:
        error: of planning; it stays as it is where no other batch can be told.
        function: the step.
        model: the Keras model that it trains; None where there is none.
        concrete: the traced step.
        sizes: of inputs that were traced without them.
        request: what the user asked for.
        batches: how many of inputs the device holds while a step runs.
    """
    size = _batch_size(concrete, sizes)
    if size is None or size < 2:
        return error
    here = for_device(request, current_device())
    room = here.budget.bytes
    assert room is not None
    try:
        sized = _sized(function, model, concrete)
        found = _largest(sized, size, here, request, room, batches, error.least)
    except NoBatchError:
        found = None
    except CheckmateError:  # sizes that don't grow in proportion, for one
        return error
    needs = (
        f"the leanest plan found needs {format_bytes(error.least, room)}"
        if error.least
        else ("each plan found exhausted its memory")
    )
    return BudgetError(
        "batch-too-large",
        f"a batch of {size} does not fit the {format_bytes(room, error.least)} that the device can "
        f"hold: {needs}; {_in_words(found)}",
        least=error.least,
    )


def _in_words(found: tuple[int, Plan] | None) -> str:
    if found is None:
        return "of smaller batches none was found that trains; take a smaller model, or input"
    size, plan = found
    held = plan.measured_peak or plan.predicted_peak
    what = "trains" if plan.measured_peak else "is likely to train"
    how = "measured in a trial run" if plan.measured_peak else "forecast"
    how += f"; not measured: {plan.why_forecast}" if plan.why_forecast else ""
    return (
        f"the largest batch found that {what} is {size}, in {format_bytes(held)} ({how}) at "
        f"{100 * plan.planned_overhead:.0f} % more {plan.cost_name}: give batch_size={size}"
    )


class _FewPlans(TriedPlans):
    """Of fewer sizes, for each takes a trial run; of the step as training with them traces it."""

    MOST: ClassVar[int] = 5
    NEAR: ClassVar[float] = 0.1

    def _concrete(self, size: int) -> Any:
        return self.sized.as_trained(size)


def _sized(function: Callable[..., Any], model: Any, concrete: Any) -> SizedStep:
    """The step at any batch size.

    Raises:
        CheckmateError: nothing tells which of its arguments grow with the batch.
    """
    if has_unknown_sizes(concrete):
        return SizedStep(lambda arguments: concrete, None)
    arguments, _ = concrete.structured_input_signature
    names = tuple(f"argument {number}" for number in range(len(arguments)))
    tracer = Tracer(function, model)

    def trace(specs: tuple[Any, ...] | None) -> Any:
        # Beside the function under way, as its own step: elsewhere no tape would record.
        return tracer.trace_anew(tracer.bind(specs or (), {}), frozenset(), convert=model is None)

    return SizedStep(trace, example_batch(tuple(arguments), names))


def _largest(
    sized: SizedStep,
    size: int,
    here: Request,
    request: Request,
    room: int,
    batches: int,
    needed: int | None,
) -> tuple[int, Plan]:
    """The largest batch below `size` whose plan fits, at no more time than a forward pass takes.

    The plan is kept for who begins again with that batch, and makes the same `request`; `here` it
    means `room` bytes. A batch of `size` is known to need `needed`.

    Raises:
        NoBatchError: there is none.
        CheckmateError: sizes of the step's tensors can't be told by two of them.
    """
    quickly = replace(here, time_limit=min(here.time_limit, _SECONDS), verbose=0)
    asked = Asked(
        request=quickly,
        budget=int(_AIM * room),
        overhead=None,
        held=held_bytes() or 0,
        batches=batches,
        workspace=device_workspaces(default_device()),
        not_here="",
        first=size,
        only_smaller=True,
    )
    with noted_interrupts() as interrupts, phase("solve"):
        say("the largest batch that trains")
        with apart():
            question, extracted, _ = question_of(sized, asked, interrupts.pass_on)
            answer = search(question, pass_on=interrupts.pass_on)
        largest = min(answer.size, size - 1)
        if not largest:  # the graph has the workspaces of a large batch at every size
            largest = size // 2 if needed is None else asked.fitting(size, needed)
            largest = max(1, min(largest, size // 2))
        if current_device().wall() is not None and answer.schedule is not None:
            own = extracted.graph.fixed_bytes - extracted.program.argument_bytes
            region = room - max(0, asked.held - own)
            at = question.graph.sizes[1]
            largest = in_pieces(extracted, at, answer.schedule, largest, region)
        beyond, impossible = (min(each, size) for each in (answer.beyond, answer.impossible))
        answer = replace(answer, size=largest, beyond=beyond, impossible=impossible)
        planner = Planner(quickly, kept_for=request)
        plans = _FewPlans(sized, asked, question, planner, interrupts, say)
        found, plan, _ = plans.largest(answer)
    return found, plan


def _batch_size(concrete: Any, sizes: ArgumentSizes | None) -> int | None:
    """Of the first argument that has one."""
    if isinstance(sizes, int):
        return sizes
    shapes = sizes or (each.shape for each in argument_placeholders(concrete))
    return next((shape[0] for shape in shapes if len(shape)), None)
