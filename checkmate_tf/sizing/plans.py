"""Plans in full, forecast and tried, at the batch size found on the graph and beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from checkmate_tf.devices.elsewhere import elsewhere
from checkmate_tf.graph.cost_models import step_costs
from checkmate_tf.graph.extraction import extract_program
from checkmate_tf.interrupts import Interrupts
from checkmate_tf.planning.outcome import Outcome
from checkmate_tf.planning.planner import Planner, plan_elsewhere
from checkmate_tf.planning.preparation import PreparedStep
from checkmate_tf.planning.settings import SCATTER
from checkmate_tf.plans.plan import Plan
from checkmate_tf.sizing.question import Asked
from checkmate_tf.sizing.result import NoBatchError
from checkmate_tf.sizing.search import Answer, Question
from checkmate_tf.sizing.sized_step import SizedStep
from checkmate_tf.user_warnings import left_unsaid
from solvers import BudgetError

_PLANS = 5
"""Batch sizes that are planned in full, at most: the one found on the graph, and its neighbours."""

_SHRINK = 0.93
"""Share of a batch whose plan failed at which the next one is made; the n-th time, its n-th power.

A batch a little smaller often fails for the same reason, so each step down is a longer one.
"""

_NEAR = 0.02
"""Share of a batch: between a plan that holds and one that doesn't, no other one is made."""

_OF_LEANEST_PLANS = (
    "leanest-plan-over-budget",
    "leanest-plan-runs",
    "kept-plan-over-budget",
    "free-memory-in-pieces",
)
"""Warnings of plans that are not taken: what is wrong with them is said in the answer."""


@dataclass(frozen=True)
class GivenUp:
    """A batch size that was given up, and why."""

    size: int
    why: str


class PlansInFull:
    """Plans of one step at one batch size after the other, until one holds and no larger one."""

    def __init__(
        self,
        sized: SizedStep,
        asked: Asked,
        question: Question,
        planner: Planner,
        interrupts: Interrupts,
        say: Callable[[str], None],
    ) -> None:
        self.sized = sized
        self.asked = asked
        self.question = question
        self.planner = planner
        self.interrupts = interrupts
        self.say = say  # what is done now

    def largest(self, answer: Answer) -> tuple[int, Plan, GivenUp]:
        """The largest size whose plan holds, and the least larger one that was given up."""
        best: tuple[int, Plan] | None = None
        failed: GivenUp | None = None
        size = answer.size
        for number in range(_PLANS):
            self.say(f"planning a batch of {size} in full")
            plan, why = self._plan(size)
            self.interrupts.pass_on()
            if plan is None:
                failed = GivenUp(size, why)
            else:
                best = size, plan
            if best is not None:
                further = self._further(*best, failed, answer)
            elif number == _PLANS - 2 and 0 < answer.unchanged < size:
                further = answer.unchanged
            else:
                further = max(1, min(size - 1, int(_SHRINK ** (number + 1) * size)))
            if further == size or (best and further <= best[0]):
                break
            size = further
        if best is None:
            assert failed is not None
            raise NoBatchError(
                "no-plan-holds",
                f"no plan holds, though the graph has schedules for batches up to {answer.size}; "
                f"at {failed.size}, the smallest one tried: {failed.why}",
            )
        if failed is None and best[0] < answer.beyond:
            failed = GivenUp(answer.beyond, "no plan was found that is lean and fast enough")
        return *best, failed or GivenUp(best[0] + 1, "not tried: so near to it no plan is made")

    def _further(self, size: int, plan: Plan, failed: GivenUp | None, answer: Answer) -> int:
        """What to try after a plan that holds: `size` itself if nothing is left to try."""
        if failed is not None:
            is_near = failed.size - size <= max(1, _NEAR * size)
            return size if is_near else (size + failed.size) // 2
        # The search rests on what other schedules waste; this one may leave room for more.
        resident = max(plan.graph.fixed_bytes, self.question.held(size))
        used = (1 + SCATTER) * (max(plan.predicted_peak, plan.measured_peak or 0) - resident)
        room = int(size * (plan.budget - resident) / max(1, used))
        left_open = (size + answer.beyond) // 2  # where the search ran out of time
        further = min(max(room, left_open), answer.impossible - 1)
        return further if further - size > _NEAR * size else size

    def _plan(self, size: int) -> tuple[Plan | None, str]:
        """A plan for a batch of `size` that holds, or why there is none."""
        try:
            with left_unsaid(*_OF_LEANEST_PLANS):
                planned = self._planned_in_full(size)
        except BudgetError as error:
            return None, str(error)
        plan = planned.plan
        most = max(plan.predicted_peak, plan.measured_peak or 0)
        if not planned.keeps or most > plan.budget:
            return None, "the leanest plan made for it is likely to need more than the budget"
        most_overhead = self.asked.most_overhead(plan.graph)
        if plan.overhead > most_overhead + 1e-9:
            return None, (
                f"its plan takes {100 * plan.overhead:.1f} % more time, and "
                f"{100 * most_overhead:.1f} % are allowed"
            )
        return plan, ""

    def _planned_in_full(self, size: int) -> Outcome:
        planned = None
        if not self.asked.not_here:
            arriving = self.question.held(size) - self.asked.held
            planned = self.planner.plan(self.sized.concrete(size), size, arriving)
        if planned is not None:
            return planned
        program = self.sized.program(size)
        costs = step_costs(self.asked.request.costs, program)
        extracted = extract_program(program, costs.model, self.asked.workspace)
        held = extracted.graph.fixed_bytes
        step = PreparedStep(extracted, elsewhere(), costs.notes, 0, held)
        return plan_elsewhere(step, self.asked.request)
