"""One budget, and the plan that was found for it."""

from __future__ import annotations

from dataclasses import dataclass

from checkmate_tf.plans.plan import Plan


@dataclass(frozen=True)
class Point:
    """A budget, and the plan of the least extra time that was found for it.

    Attributes:
        plan: it; `plan.budget` is the budget in bytes.
        plain_peak: bytes that the unchanged step needs.
    """

    plan: Plan
    plain_peak: int

    @property
    def budget(self) -> int:
        """Bytes that may be on the device at any moment."""
        return self.plan.budget

    @property
    def share(self) -> float:
        """The budget as a share of the plain peak."""
        return self.budget / self.plain_peak

    @property
    def peak(self) -> int:
        """Bytes that the plan needs: as compiled or measured, or else predicted."""
        plan = self.plan
        return plan.compiled_peak or plan.measured_peak or plan.predicted_peak

    @property
    def is_measured(self) -> bool:
        """Whether the plan has run for trial."""
        return self.plan.measured_peak is not None

    @property
    def is_compiled(self) -> bool:
        """Whether XLA has compiled the step by the plan, and said what it takes."""
        return self.plan.compiled_peak is not None

    @property
    def how(self) -> str:
        """How the peak is known: "compiled", "measured" or "planned"."""
        if self.is_compiled:
            return "compiled"
        return "measured" if self.is_measured else "planned"

    @property
    def overhead(self) -> float:
        """Predicted extra time, as a share of a step; 0.05 is 5 %."""
        return max(0.0, round(self.plan.overhead, 9))  # costs are added in different orders

    @property
    def least_overhead(self) -> float | None:
        """No schedule of as many live bytes takes less extra time; None where nothing is proved."""
        bound = self.plan.solution.bound
        if not self.overhead:
            return 0.0
        return None if bound is None else max(0.0, bound / self.plan.graph.one_pass_cost - 1)

    @property
    def holds_for_its_order(self) -> bool:
        """Whether `least_overhead` is proved for the plan's own order of operations alone."""
        is_proved = self.overhead > 0 and self.least_overhead is not None
        return is_proved and self.plan.solution.bound_order == "fixed"
