"""What `largest_batch` found, and how a person reads it."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill

from checkmate_tf.plans.plan import Plan
from checkmate_tf.step import RematerializedStep
from solvers import format_bytes


@dataclass(frozen=True)
class LargestBatch:
    """The largest batch that was found for a budget, with its plan.

    Attributes:
        batch_size: examples in a batch.
        unchanged: the largest batch of the step as it is, predicted; 0 if not even one fits.
        plan: for that batch size; `str(plan)` is a table.
        most_overhead: extra time that was allowed, as a share of a step; 0.3 is 30 %.
        allowed: the same in words.
        beyond: the least larger batch size that was given up.
        why: what was wrong with it.
        impossible: the least batch size for which no schedule is within the budget at whatever
            cost, by a bound; None if none is known.
        grows: the names of the arguments whose first dimension is the batch.
        stays: the names of the other arrays.
        confirmation: whether a trial run confirmed the plan, or XLA's compiler, in words.
        step: the step, which runs by this plan; None where it is for another device.
        notes: what else the user should know.
    """

    batch_size: int
    unchanged: int
    plan: Plan
    most_overhead: float
    allowed: str
    beyond: int
    why: str
    impossible: int | None
    grows: tuple[str, ...]
    stays: tuple[str, ...]
    confirmation: str
    step: RematerializedStep | None
    notes: tuple[str, ...] = ()

    @property
    def confirmed(self) -> bool:
        """Whether a trial run on this device, or XLA's compiler for it, kept the budget."""
        return self.plan.measured_peak is not None or self.plan.compiled_peak is not None

    @property
    def overhead(self) -> float:
        """Predicted extra time as a share of a step: of `plan`."""
        return self.plan.overhead

    @property
    def extra_seconds(self) -> float | None:
        """Predicted extra time of each step; None where costs are no times."""
        graph = self.plan.graph
        return self.overhead * graph.one_pass_cost if graph.cost_unit == "s" else None

    def __str__(self) -> str:
        plan = self.plan
        seconds = "" if self.extra_seconds is None else f", {self.extra_seconds:.3g} s a step"
        rows = [
            ("largest batch", f"{self.batch_size} (unchanged step: {self.unchanged}, predicted)"),
            ("budget", format_bytes(plan.budget)),
            ("peak", f"{format_bytes(plan.predicted_peak)} (predicted)"),
            ("", f"{format_bytes(plan.measured_peak)} (measured)" if plan.measured_peak else ""),
            ("", f"{format_bytes(plan.compiled_peak)} (compiled)" if plan.compiled_peak else ""),
            ("extra time", f"{100 * plan.overhead:.1f} % (predicted{seconds})"),
            ("at most", f"{100 * self.most_overhead:.1f} %, {self.allowed}"),
            (f"why not {self.beyond}", self.why),
            ("impossible", f"{self.impossible} and more, proved" if self.impossible else ""),
            ("grows with the batch", ", ".join(self.grows)),
            ("stays as it is", ", ".join(self.stays)),
            ("XLA" if plan.compiled_peak else "trial run", self.confirmation),
        ]
        lines = [_row(name, value) for name, value in rows if value]
        return "\n".join([*lines, *(fill(f"note: {note}", 79) for note in self.notes)])


def _row(name: str, value: str) -> str:
    return fill(value, 79, initial_indent=f"{name:<22}", subsequent_indent=22 * " ")
