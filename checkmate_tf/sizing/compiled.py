"""The largest batch of a step that XLA compiles: few sizes are compiled, and they tell the others.

What XLA takes for one schedule is affine in the batch, nearly. So a search on the graph says where
to begin, the plan that is compiled there says where to go on, and goes on with its schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from checkmate_tf.interrupts import Interrupts
from checkmate_tf.planning.compiled.planner import CompiledPlanner
from checkmate_tf.planning.settings import COMPILED_LEAST_RATIO, COMPILED_WASTE
from checkmate_tf.plans.plan import Plan
from checkmate_tf.sizing.plans import GivenUp
from checkmate_tf.sizing.question import Asked
from checkmate_tf.sizing.result import NoBatchError
from checkmate_tf.sizing.search import Answer, Question, largest
from checkmate_tf.sizing.sized_step import SizedStep
from solvers import BudgetError, Schedule, simulate

_SIZES = 4
"""Batch sizes for which plans are compiled, at most."""

_AIM = 0.98
"""Share of the activations' part that the next size is expected to use."""

_NEAR = 0.03
"""Share of a batch: so near to a plan that holds no other one is compiled."""

_SMALLER = 0.85
"""Share of a batch whose plan does not hold at which the next one is tried, if nothing tells."""


@dataclass(frozen=True)
class _Seen:
    """A batch size, and the bytes that XLA takes for its plan beside what is held."""

    size: int
    added: int


def compiled_question(
    question: Question,
    sized: SizedStep,
    asked: Asked,
    planner: CompiledPlanner,
    interrupts: Interrupts,
) -> Question:
    """The question, with what XLA takes for each live byte: the step is compiled for it, once.

    Raises:
        NotCompilableError: XLA can't compile it.
    """
    size = question.graph.sizes[1]
    arriving = question.held(size) - asked.held
    search = planner.search(sized.concrete(size), size, arriving, interrupts)
    graph = question.graph.graphs[1]
    unchanged = Schedule(range(len(graph)))
    live = simulate(graph, unchanged).peak - graph.fixed_bytes
    ratio = search.plain.added / max(1, live)
    of_a_plan = COMPILED_WASTE * max(ratio, COMPILED_LEAST_RATIO)
    return replace(
        question,
        order="fixed",  # as XLA follows it
        waste=lambda schedule: ratio if schedule == unchanged else of_a_plan,
        # XLA computes again in the loop that reads it what it would else hold.
        least_waste=min(1.0, 0.5 * ratio),
    )


class CompiledPlans:
    """As `PlansInFull`, of plans that are compiled instead of tried."""

    def __init__(
        self,
        sized: SizedStep,
        asked: Asked,
        question: Question,
        planner: CompiledPlanner,
        interrupts: Interrupts,
        say: Callable[[str], None],
    ) -> None:
        self.sized = sized
        self.asked = asked
        self.question = question
        self.planner = planner
        self.interrupts = interrupts
        self.say = say  # what is done now
        self._seen: list[_Seen] = []

    def largest(self, answer: Answer) -> tuple[int, Plan, GivenUp]:
        """The largest size whose plan holds, and the least larger one that was given up.

        Raises:
            NoBatchError: no plan that was compiled holds.
        """
        best: tuple[int, Plan] | None = None
        failed: GivenUp | None = None
        size = max(1, answer.size)
        unchanged = int(_AIM * answer.unchanged)
        for number in range(_SIZES):
            self.say(f"compiling plans for a batch of {size}")
            plan, why = self._plan(size, None if best is None else best[1].schedule)
            self.interrupts.pass_on()
            if plan is not None:
                best = size, plan
            else:
                failed = GivenUp(size, why)
            if best is not None:
                further = self._further(size, best[0], failed)
            elif number == _SIZES - 2 and 0 < unchanged < size:
                further = unchanged
            else:
                further = self._smaller(size, unchanged)
            if further == size:
                break
            size = further
        if best is None:
            assert failed is not None
            raise NoBatchError(
                "no-plan-holds",
                f"no plan that XLA compiled holds; at a batch of {failed.size}, the smallest one "
                f"tried: {failed.why}",
            )
        size, plan = best
        return size, plan, failed or GivenUp(size + 1, "not tried: so near to it no plan is made")

    def _smaller(self, size: int, unchanged: int) -> int:
        """What to try after a batch of `size`, where no plan holds yet."""
        expected = self._fitting()
        if 0 < expected < size:
            return expected
        return max(1, (size + unchanged) // 2 if unchanged < size else int(_SMALLER * size))

    def _further(self, size: int, held: int, failed: GivenUp | None) -> int:
        """What to try after a batch of `size`, where one of `held` holds: itself for nothing."""
        room = max(1, _NEAR * held)
        if failed is not None and failed.size - held <= room:
            return size
        expected = self._fitting()
        if failed is not None and not held < expected < failed.size:
            expected = (held + failed.size) // 2
        return expected if expected - held > room else size

    def _fitting(self) -> int:
        """The largest batch that is likely to fit; 0 where nothing was told."""
        if not self._seen:
            return 0
        last = self._seen[-1]
        growth, before = last.added / last.size, self._seen[-2] if len(self._seen) > 1 else None
        if before is not None and before.size != last.size:
            growth = max(0.0, (last.added - before.added) / (last.size - before.size)) or growth

        def fits(size: int) -> bool:
            added = last.added + growth * (size - last.size)
            return added <= _AIM * (self.asked.budget - self.question.held(size))

        return largest(fits, 4 * last.size)

    def _plan(self, size: int, begin_with: Schedule | None) -> tuple[Plan | None, str]:
        """A plan for a batch of `size` that holds, or why there is none."""
        arriving = self.question.held(size) - self.asked.held
        concrete = self.sized.concrete(size)
        try:
            planned = self.planner.plan(concrete, size, arriving, begin_with=begin_with)
        except BudgetError as error:
            if error.least is not None:
                self._note(size, error.least)
            return None, str(error)
        if planned is None:  # nothing can be recomputed: the step as it is
            search = self.planner.search(concrete, size, arriving, self.interrupts)
            plan = replace(search.planned(search.plain).plan, budget=self.asked.budget)
        else:
            plan = planned.plan
        assert plan.compiled_peak is not None
        self._note(size, plan.compiled_peak)
        if plan.compiled_peak > self.asked.budget:
            return None, "XLA takes more than the budget, and nothing can be recomputed"
        allowed = self.asked.most_overhead(plan.graph)
        if plan.overhead > allowed + 1e-9:
            return None, (
                f"its plan takes {100 * plan.overhead:.1f} % more time, and "
                f"{100 * allowed:.1f} % are allowed"
            )
        return plan, ""

    def _note(self, size: int, peak: int) -> None:
        self._seen.append(_Seen(size, max(1, peak - self.question.held(size))))
