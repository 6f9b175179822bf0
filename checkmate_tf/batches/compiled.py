"""The largest batch of a step that XLA compiles: few sizes are compiled, and they tell the others.

What XLA takes for one schedule is affine in the batch, nearly. So a search on the graph says where
to begin, the plan that is compiled there says where to go on, and goes on with its schedule.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from checkmate_tf.batches.plans import GivenUp, Plans
from checkmate_tf.batches.question import Asked
from checkmate_tf.batches.search import Answer, Question, largest
from checkmate_tf.batches.sized_step import SizedStep
from checkmate_tf.interrupts import Interrupts
from checkmate_tf.planning.compiled.planner import CompiledPlanner
from checkmate_tf.planning.settings import COMPILED_LEAST_RATIO, COMPILED_WASTE
from checkmate_tf.plans.plan import Plan
from solvers import BudgetError, Schedule, simulate

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


@dataclass
class CompiledPlans(Plans):
    """Few, for each is compiled; where they lie is told by what XLA took for those before."""

    MOST = 4
    AIM = _AIM
    DOING = "compiling plans for a batch of {}"
    NONE_HOLDS = "no plan that XLA compiled holds"

    planner: CompiledPlanner
    _seen: list[_Seen] = field(default_factory=list)

    def _look(self, size: int, begin_with: Schedule | None) -> tuple[Plan | None, str]:
        given = self.sized.concrete(size), size, self._arriving(size)
        try:
            planned = self.planner.plan(*given, begin_with=begin_with)
        except BudgetError as error:
            if error.least is not None:
                self._note(size, error.least)
            return None, str(error)
        if planned is None:  # nothing can be recomputed: the step as it is
            search = self.planner.search(*given, self.interrupts)
            plan = replace(search.planned(search.plain).plan, budget=self.asked.budget)
        else:
            plan = planned.plan
        assert plan.compiled_peak is not None
        self._note(size, plan.compiled_peak)
        if plan.compiled_peak > self.asked.budget:
            return None, "XLA takes more than the budget, and nothing can be recomputed"
        return self._allowed(plan)

    def _larger(self, size: int, plan: Plan, failed: GivenUp | None, answer: Answer) -> int:
        room = max(1, _NEAR * size)
        if failed is not None and failed.size - size <= room:
            return size
        expected = self._fitting()
        if failed is not None and not size < expected < failed.size:
            expected = (size + failed.size) // 2
        return expected if expected - size > room else size

    def _smaller(self, size: int, number: int, unchanged: int) -> int:
        expected = self._fitting()
        if 0 < expected < size:
            return expected
        return max(1, (size + unchanged) // 2 if unchanged < size else int(_SMALLER * size))

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

    def _note(self, size: int, peak: int) -> None:
        self._seen.append(_Seen(size, max(1, peak - self.question.held(size))))
