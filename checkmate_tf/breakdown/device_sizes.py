"""The largest batches of a step that devices of some sizes hold, unchanged and by a plan.

All are answered on one graph, and each answer begins with the schedules of those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from checkmate_tf.batches.pieces import in_pieces
from checkmate_tf.batches.question import growth_of, notes_on_sizes, refuse_empty, waste_of
from checkmate_tf.batches.search import Question, search
from checkmate_tf.batches.sized_step import GraphOfBatch, SizedStep, forward_cost
from checkmate_tf.breakdown.result import Fit
from checkmate_tf.devices.elsewhere import usable_bytes
from checkmate_tf.graph.extraction import Extraction, extract_like
from solvers import Schedule, simulate


@dataclass(frozen=True)
class Sizes:
    """What is asked of devices.

    Attributes:
        kind: of them, "CPU" or "GPU".
        memory: bytes of each.
        overhead: extra time that a plan may take, as a share; None for one more forward pass.
        time_limit: seconds for all searches together.
    """

    kind: str
    memory: Sequence[int]
    overhead: float | None
    time_limit: float


def largest_batches(
    sized: SizedStep,
    extracted: Extraction,
    batch: tuple[int, int],
    waste: float,
    is_compiled: bool,
    asked: Sizes,
    show: Callable[[str], None],
    pass_on: Callable[[], None],
) -> tuple[tuple[Fit, ...], tuple[str, ...]]:
    """A row for each device, and what the user should know of sizes.

    Args:
        sized: the step at any batch size.
        extracted: the same at one.
        batch: that size, and how many batches of inputs a device holds while the step runs.
        waste: bytes that the unchanged step takes for each live one.
        is_compiled: XLA compiles it, whose buffers lie in one piece.
        asked: of devices.
        show: is told what is done now.
        pass_on: raises `KeyboardInterrupt` if Ctrl-C was pressed.

    Raises:
        CheckmateError: nothing grows with the batch, or nothing is computed.
    """
    if not asked.memory:
        return (), ()
    question, notes = _question(sized, extracted, *batch, waste, asked)
    starts: tuple[Schedule, ...] = ()
    fits = []
    for memory in asked.memory:
        show(f"the largest batch on {memory / 2**30:g} GiB")
        usable = usable_bytes(asked.kind, memory)
        answer = search(replace(question, budget=usable), pass_on=pass_on, starts=starts)
        starts = answer.starts
        graph = extracted.graph
        in_order = Schedule(range(len(graph)))
        best = answer.schedule or in_order
        unchanged, planned = answer.unchanged, answer.size
        if asked.kind == "GPU":  # whose memory is one region
            if not is_compiled:
                unchanged = in_pieces(extracted, batch[0], in_order, unchanged, usable)
            planned = in_pieces(extracted, batch[0], best, planned, usable)
        overhead = simulate(graph, best).cost / graph.one_pass_cost - 1
        fits.append(Fit(memory, usable, unchanged, max(unchanged, planned), overhead))
    return tuple(fits), notes


def _question(
    sized: SizedStep, extracted: Extraction, size: int, batches: int, waste: float, asked: Sizes
) -> tuple[Question, tuple[str, ...]]:
    # Two sizes are enough to know all; a third one shows if that is so.
    programs = {times * size: sized.program(times * size) for times in (1, 2, 3)}
    graph, twice = extracted.graph, extract_like(extracted, programs[2 * size]).graph
    refuse_empty(graph)
    growth_of(programs[size], programs[2 * size], size)  # or an error: nothing grows
    inputs, of_two = (programs[each].argument_bytes for each in (size, 2 * size))
    each = (of_two - inputs) / size
    overhead = asked.overhead
    if overhead is None:
        overhead = forward_cost(graph) / graph.one_pass_cost
    unchanged = Schedule(range(len(graph)))
    # A step that XLA can't keep within the memory by a plan trains without XLA.
    by_plan = cache(lambda schedule: waste_of(extracted, schedule, batches * inputs))
    question = Question(
        graph=GraphOfBatch((2 * size, size), (twice, graph)),
        budget=0,
        held=lambda other: round(batches * (inputs + each * (other - size))),
        most_cost=graph.one_pass_cost * (1 + overhead),
        order="free",
        waste=lambda schedule: waste if schedule == unchanged else by_plan(schedule),
        time_limit=asked.time_limit / len(asked.memory),
        least_waste=min(1.0, 0.5 * waste),
    )
    return question, notes_on_sizes(programs)
