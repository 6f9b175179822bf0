"""Plans at one batch size after the other, until one holds and no larger one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from checkmate_tf.batches.question import Asked
from checkmate_tf.batches.search import Answer, Question
from checkmate_tf.batches.sized_step import SizedStep
from checkmate_tf.interrupts import Interrupts
from checkmate_tf.plans.plan import Plan
from solvers import BudgetError, Schedule


class NoBatchError(BudgetError):
    """Not even a batch of 1 was found to fit."""


@dataclass(frozen=True)
class GivenUp:
    """A batch size that was given up, and why."""

    size: int
    why: str


@dataclass
class Plans(ABC):
    """Plans of one step, from the batch size found on the graph on."""

    MOST: ClassVar[int]  # batch sizes that are looked at
    AIM: ClassVar[float] = 1.0  # share of the largest unchanged batch, tried where nothing held
    DOING: ClassVar[str]  # what is said of a batch of so many
    NONE_HOLDS: ClassVar[str]  # though the graph has schedules for batches up to so many

    sized: SizedStep
    asked: Asked
    question: Question
    planner: Any
    interrupts: Interrupts
    say: Callable[[str], None]  # what is done now

    def largest(self, answer: Answer) -> tuple[int, Plan, GivenUp]:
        """The largest size whose plan holds, and the least larger one that was given up.

        Raises:
            NoBatchError: no plan that was made holds.
        """
        best: tuple[int, Plan] | None = None
        failed: GivenUp | None = None
        size = max(1, answer.size)
        unchanged = int(self.AIM * answer.unchanged)
        for number in range(self.MOST):
            self.say(self.DOING.format(size))
            plan, why = self._look(size, None if best is None else best[1].schedule)
            self.interrupts.pass_on()
            if plan is None:
                failed = GivenUp(size, why)
            else:
                best = size, plan
            if best is not None:
                further = self._larger(*best, failed, answer)
            elif number == self.MOST - 2 and 0 < unchanged < size:
                further = unchanged
            else:
                further = self._smaller(size, number, unchanged)
            if further == size or (best is not None and further <= best[0]):
                break
            size = further
        if best is not None:
            return *best, failed or self._not_tried(best[0], answer)
        assert failed is not None
        raise NoBatchError(
            "no-plan-holds",
            f"{self.NONE_HOLDS.format(answer.size)}; at a batch of {failed.size}, the smallest one "
            f"tried: {failed.why}",
        )

    @abstractmethod
    def _look(self, size: int, begin_with: Schedule | None) -> tuple[Plan | None, str]:
        """A plan for a batch of `size` that holds, or why there is none.

        `begin_with` is the schedule of the last plan that held.
        """

    @abstractmethod
    def _larger(self, size: int, plan: Plan, failed: GivenUp | None, answer: Answer) -> int:
        """What to try after a plan for `size` that holds: no more than that for nothing."""

    @abstractmethod
    def _smaller(self, size: int, number: int, unchanged: int) -> int:
        """What to try where no plan has held, the last one, `number`, for a batch of `size`."""

    def _not_tried(self, size: int, answer: Answer) -> GivenUp:
        """The least size above the one that holds, where no larger one was looked at."""
        return GivenUp(size + 1, "not tried: so near to it no plan is made")

    def _arriving(self, size: int) -> int:
        """Bytes of inputs that the device will hold and does not hold yet."""
        return self.question.held(size) - self.asked.held

    def _allowed(self, plan: Plan) -> tuple[Plan | None, str]:
        """The plan if it takes no more time than is allowed, or how much it takes."""
        most = self.asked.most_overhead(plan.graph)
        if plan.overhead <= most + 1e-9:
            return plan, ""
        return None, (
            f"its plan takes {100 * plan.overhead:.1f} % more time, and {100 * most:.1f} % are "
            "allowed"
        )
