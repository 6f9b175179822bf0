"""A plan: a schedule, the peak that is predicted for it, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import Any

from solvers import CheckmateError, ComputationGraph, Schedule, Solution, format_bytes


@dataclass(frozen=True)
class Plan:
    """How one step is executed.

    Attributes:
        graph: the step's computation graph.
        schedule: node numbers in execution order.
        budget: bytes that were asked for, everything on the device included.
        predicted_peak: the most bytes that the device's allocator is expected to hold in ten
            steps, in all; a forecast, moved to where the trial run's steps lay if there was one.
        baseline_peak: the same for the step as it was traced, unchanged; a forecast.
        overhead: predicted extra time, or cost in the graph's unit, as a share of one pass; 0.05
            is 5 %.
        solution: the solver's answer, with its bound.
        measured_peak: the most bytes that the trial run saw; None where there was none.
        notes: what else the user should know.
        measured_baseline_peak: the most bytes that the unchanged step held when it ran for trial,
            from which a share counts; None where it has not run.
    """

    graph: ComputationGraph
    schedule: Schedule
    budget: int
    predicted_peak: int
    baseline_peak: int
    overhead: float
    solution: Solution
    measured_peak: int | None = None
    notes: tuple[str, ...] = ()
    measured_baseline_peak: int | None = None

    def _cost(self) -> str:
        """What the cost model counts; only seconds are time."""
        return {"s": "time", "": "cost"}.get(self.graph.cost_unit, self.graph.cost_unit)

    def _asked(self) -> str:
        """The solver counts live values; what allocators waste is no part of its budget."""
        size = self.solution.budget
        return "" if size is None else f", asked for {format_bytes(size)} of live values"

    def _distance(self) -> str:
        solution = self.solution
        if not solution.bound or solution.cost is None:
            return "how far above the least for that is not known"
        percent = 100 * max(0.0, solution.cost / solution.bound - 1)
        order = ", in this order" if solution.bound_order == "fixed" else ""
        return f"at most {percent:.2f} % above the least for that{order}"

    def __str__(self) -> str:
        recomputations = len(self.schedule) - len(self.graph)
        unchanged = self.measured_baseline_peak
        rows = [
            ("budget", format_bytes(self.budget)),
            ("peak, unchanged step", f"{format_bytes(self.baseline_peak)} (predicted)"),
            ("", f"{format_bytes(unchanged)} (measured)" if unchanged else ""),
            ("peak, this plan", f"{format_bytes(self.predicted_peak)} (predicted)"),
            ("", f"{format_bytes(self.measured_peak)} (measured)" if self.measured_peak else ""),
            ("variables and inputs", format_bytes(self.graph.fixed_bytes)),
            ("recomputed", f"{recomputations} of {len(self.graph)} nodes"),
            (f"extra {self._cost()}", f"{100 * self.overhead:.1f} % (predicted)"),
            ("solver", f"{self.solution.solver}, {self.solution.seconds:.1f} s{self._asked()}"),
            ("", self._distance()),
        ]
        lines = [f"{name:<22}{value}" for name, value in rows if value]
        return "\n".join([*lines, *(fill(f"note: {note}", 79) for note in self.notes)])


class _NotPlannedYet:
    """Stands where a plan will be, and says when; it is false, as None is."""

    _WHEN = "no plan yet: it is made when the step is called for the first time"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return self._WHEN

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # as `copy` and others ask for
            raise AttributeError(name)
        raise CheckmateError(f"there is {self._WHEN}, and {name!r} with it")


NOT_PLANNED_YET: Any = _NotPlannedYet()
