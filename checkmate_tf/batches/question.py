"""What is asked of a step, and the graph at every batch size on which the search asks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from checkmate_tf.batches.search import Question
from checkmate_tf.batches.sized_step import (
    GraphOfBatch,
    SizedStep,
    activation_bytes,
    forward_cost,
    not_affine,
)
from checkmate_tf.devices.current import current_device
from checkmate_tf.graph.cost_models import step_costs
from checkmate_tf.graph.extraction import Extraction, extract_like, extract_program
from checkmate_tf.planning.request import Request
from checkmate_tf.planning.settings import SCATTER
from checkmate_tf.program.forecast import forecast
from checkmate_tf.program.lower import lower
from checkmate_tf.trace.operations import describe
from checkmate_tf.trace.program import Program
from profiles.operation import Operation
from solvers import CheckmateError, ComputationGraph, Schedule, format_bytes, simulate


@dataclass(frozen=True)
class Asked:
    """What the user asked for, and the device that it is asked of.

    Attributes:
        request: how plans are made.
        budget: bytes on the device at any moment.
        overhead: extra time as a share of a step; None for one more forward pass.
        held: bytes that the device holds now, before the step is called with anything.
        batches: of inputs that the device holds while a step runs.
        workspace: bytes that an operation needs on the device only while it runs.
        not_here: why nothing can be tried on the device; "" if it is here.
        first: a batch size that the step takes; None if none is known.
        only_smaller: no batch as large as `first` is asked for.
    """

    request: Request
    budget: int
    overhead: float | None
    held: int
    batches: int
    workspace: Callable[[Operation], int]
    not_here: str
    first: int | None
    only_smaller: bool = False

    def most_overhead(self, graph: ComputationGraph) -> float:
        """Extra time that is allowed, as a share of one pass through `graph`."""
        if self.overhead is not None:
            return self.overhead
        return forward_cost(graph) / graph.one_pass_cost

    def fitting(self, size: int, needed: int) -> int:
        """The batch that fits if one of `size` needs so many bytes, and all of them grow with it.

        Only what is held before the step does not grow.
        """
        return int(size * max(0, self.budget - self.held) / max(1, needed - self.held))


def question_of(
    sized: SizedStep, asked: Asked, pass_on: Callable[[], None]
) -> tuple[Question, Extraction, tuple[str, ...]]:
    """The question for `search`, the step that it is made of, at the second of the graph's sizes,
    and what the user should know of costs and sizes.

    Args:
        sized: the step.
        asked: what the user asked.
        pass_on: raises `KeyboardInterrupt` if Ctrl-C was pressed.

    Raises:
        CheckmateError: nothing grows with the batch, or nothing is computed.
    """
    first = max(2, asked.first or 2)
    main = _size_near_the_answer(sized, first, asked)
    programs = {size: sized.program(size) for size in (first, 2 * first, main)}
    costs = step_costs(asked.request.costs, programs[main])
    large = extract_program(programs[main], costs.model, asked.workspace)
    pass_on()
    far = first if main > 2 * first else 2 * first
    small = extract_like(large, programs[far], costs.model)
    graph = large.graph
    refuse_empty(graph)
    ends = [programs[size].argument_bytes for size in (first, 2 * first)]
    each = (ends[1] - ends[0]) / first
    rest = ends[0] - first * each
    held = asked.held + asked.batches * large.program.argument_bytes
    question = Question(
        graph=GraphOfBatch((far, main), (small.graph, graph)),
        budget=asked.budget,
        held=lambda size: asked.held + asked.batches * round(each * size + rest),
        most_cost=graph.one_pass_cost * (1 + asked.most_overhead(graph)),
        order=asked.request.order,
        waste=lambda schedule: waste_of(large, schedule, held),
        time_limit=asked.request.time_limit,
    )
    return question, large, (*costs.notes, *notes_on_sizes(programs))


def _size_near_the_answer(sized: SizedStep, first: int, asked: Asked) -> int:
    """A third batch size, for which the graph is made: about twice what fits unchanged.

    It is below `first` where larger ones are not asked for: kernels have no memory for them.
    """
    one, two = sized.program(first), sized.program(2 * first)
    bytes_of_one, growth = growth_of(one, two, first)
    beside = max(0, asked.held - one.fixed_bytes)  # which is no room for any batch
    unchanged = first + (asked.budget - beside - bytes_of_one) / growth
    smaller = max(2, round(2 * unchanged))
    if asked.only_smaller:
        return min(smaller, max(2, first // 2))
    if unchanged >= first:
        return max(3, round(2 * unchanged / first)) * first
    return smaller if smaller < first else 3 * first


def refuse_empty(graph: ComputationGraph) -> None:
    """Refuse a step that computes nothing.

    Raises:
        CheckmateError: it is one.
    """
    if not graph.one_pass_cost:
        raise CheckmateError(
            "step-empty", "the step computes nothing, so that it has no largest batch"
        )


def growth_of(one: Program, two: Program, size: int) -> tuple[int, float]:
    """Bytes that the unchanged step holds at a batch of `size`, and how many more an example takes.

    Args:
        one: the step at that size.
        two: at twice that size.
        size: in examples.

    Raises:
        CheckmateError: nothing grows with the batch.
    """
    bytes_at = [each.fixed_bytes + activation_bytes(each) for each in (one, two)]
    growth = (bytes_at[1] - bytes_at[0]) / size
    if growth <= 0:
        raise CheckmateError(
            "nothing-grows-with-the-batch",
            f"nothing that the step holds grows with the batch: {format_bytes(bytes_at[0])} at "
            f"{size} and {format_bytes(bytes_at[1])} at {2 * size} examples; say what "
            "carries the batch with tf.TensorSpec((None, …)) in batch=",
        )
    return bytes_at[0], growth


def waste_of(extraction: Extraction, schedule: Schedule, held: int) -> float:
    """Bytes that an allocator is likely to take for each live byte of a schedule."""
    graph = extraction.graph
    resident = max(graph.fixed_bytes, held)
    device = current_device()
    instructions = lower(extraction, schedule, device)
    expected = forecast(extraction.program, instructions, resident, at_once=device.at_once())
    most = max(expected.worst - resident, (1 + SCATTER) * (expected.typical - resident))
    return max(0.1, most / max(1, simulate(graph, schedule).peak - graph.fixed_bytes))


def notes_on_sizes(programs: dict[int, Program]) -> tuple[str, ...]:
    """What the user should know of sizes, of the step at three batch sizes."""
    odd = not_affine(programs)
    if not odd:
        return ()
    return (
        f"the sizes of {len(odd)} operations do not grow in proportion to the batch, "
        f"{describe(odd[0])} for one: the search was less exact, the plan is not",
    )
