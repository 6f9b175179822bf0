"""Plans that are tried, or forecast, for the largest batch of a step without XLA."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from checkmate_tf.batches.plans import GivenUp, Plans
from checkmate_tf.batches.search import Answer
from checkmate_tf.devices.elsewhere import another_device
from checkmate_tf.graph.cost_models import step_costs
from checkmate_tf.graph.extraction import extract_program
from checkmate_tf.planning.outcome import Outcome
from checkmate_tf.planning.planner import Planner, plan_elsewhere
from checkmate_tf.planning.preparation import PreparedStep
from checkmate_tf.planning.settings import SCATTER
from checkmate_tf.plans.plan import Plan
from checkmate_tf.user_warnings import left_unsaid
from solvers import BudgetError, GraphError, Schedule

_SHRINK = 0.93
"""Share of a batch whose plan failed at which the next one is made; the n-th time, its n-th power.

A batch a little smaller often fails for the same reason, so each step down is a longer one.
"""

_OF_LEANEST_PLANS = (
    "leanest-plan-over-budget",
    "leanest-plan-runs",
    "kept-plan-over-budget",
    "free-memory-in-pieces",
)
"""Warnings of plans that are not taken: what is wrong with them is said in the answer."""


@dataclass
class TriedPlans(Plans):
    """Of the batch size found on the graph, and its neighbours."""

    MOST = 5
    NEAR: ClassVar[float] = 0.02  # share of a batch, by which it is not worth another plan
    DOING = "planning a batch of {} in full"
    NONE_HOLDS = "no plan holds, though the graph has schedules for batches up to {}"

    planner: Planner
    _needed: dict[int, int] = field(default_factory=dict)  # bytes, by sizes whose plans failed

    def _look(self, size: int, begin_with: Schedule | None) -> tuple[Plan | None, str]:
        try:
            with left_unsaid(*_OF_LEANEST_PLANS):
                planned = self._planned(size)
        except BudgetError as error:
            if error.least is not None:
                self._needed[size] = error.least
            return None, str(error)
        except GraphError as error:  # beside a kernel's workspace all else is negligible
            return None, str(error)
        plan = planned.plan
        most = max(plan.predicted_peak, plan.measured_peak or 0)
        if not planned.keeps or most > plan.budget:
            self._needed[size] = most
            return None, "the leanest plan made for it is likely to need more than the budget"
        return self._allowed(plan)

    def _larger(self, size: int, plan: Plan, failed: GivenUp | None, answer: Answer) -> int:
        if failed is not None:
            is_near = failed.size - size <= max(1, self.NEAR * size)
            return size if is_near else (size + failed.size) // 2
        # The search rests on what other schedules waste; this one may leave room for more.
        resident = max(plan.graph.fixed_bytes, self.question.held(size))
        used = (1 + SCATTER) * (max(plan.predicted_peak, plan.measured_peak or 0) - resident)
        room = int(size * (plan.budget - resident) / max(1, used))
        left_open = (size + answer.beyond) // 2  # where the search ran out of time
        further = min(max(room, left_open), answer.impossible - 1)
        return further if further - size > self.NEAR * size else size

    def _smaller(self, size: int, number: int, unchanged: int) -> int:
        shorter = int(_SHRINK ** (number + 1) * size)
        fitting = self.asked.fitting(size, self._needed[size]) if size in self._needed else size
        return max(1, min(size - 1, shorter, fitting))

    def _not_tried(self, size: int, answer: Answer) -> GivenUp:
        if size < answer.beyond:
            return GivenUp(answer.beyond, "no plan was found that is lean and fast enough")
        return super()._not_tried(size, answer)

    def _concrete(self, size: int) -> Any:
        return self.sized.concrete(size)

    def _planned(self, size: int) -> Outcome:
        planned = None
        if not self.asked.not_here:
            concrete, arriving = self._concrete(size), self._arriving(size)
            planned = self.planner.plan(concrete, size, arriving, trains=False)
        if planned is not None:
            return planned
        program = self.sized.program(size)
        costs = step_costs(self.asked.request.costs, program)
        extracted = extract_program(program, costs.model, self.asked.workspace)
        held = extracted.graph.fixed_bytes
        step = PreparedStep(extracted, another_device(), costs.notes, 0, held)
        return plan_elsewhere(step, self.asked.request)
