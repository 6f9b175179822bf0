"""A plan: a schedule, the peak that is predicted for it, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from textwrap import fill
from typing import Any

from checkmate_tf.phases import in_words
from checkmate_tf.planning.plan_documents import document_of, read, read_document
from checkmate_tf.planning.plan_table import by_layers
from solvers import CheckmateError, ComputationGraph, Schedule, Solution, format_bytes
from solvers.graph import input_order_peak
from solvers.graph.files import read_json, write_whole

_OF_THE_SOLVER = ("budget", "least_budget", "provable_budget")
"""What of a `Solution` the plan of a step has besides what each plan.json has."""


@dataclass(frozen=True)
class Origin:
    """What a plan was made for, by which it is found again and judged.

    Attributes:
        content: of the step; equal for steps that do the same, in every process.
        workspaces: bytes that each operation needs only while it runs, as they were measured then.
        resident: bytes that the device held before the step.
        device: its full name.
        tensorflow: the version.
    """

    content: str
    workspaces: tuple[int, ...]
    resident: int
    device: str
    tensorflow: str


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
        origin: what the plan was made for; None of one that `checkmate-tf solve` wrote.
        seconds: of waiting for the plan, by what was done: trace, extract, solve, trials, emit.
        compiled_peak: bytes that the step takes by this plan once XLA has compiled it, as the
            compiler says; None where it is not compiled.
        compiled_baseline_peak: the same for the step as it was traced.
        compilations: of plans, until this one was found.

    Example:
        >>> import tempfile
        >>> from solvers import solve
        >>> from solvers.graph.layer_graphs import unit_chain
        >>> graph = unit_chain(8)
        >>> solution = solve(graph, 6, "cutting_planes")
        >>> plan = Plan(graph, solution.schedule, 6, 6, 10, 4 / 17, solution)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     plan.save(f"{folder}/plan.json")
        ...     Plan.load(f"{folder}/plan.json").schedule == plan.schedule
        True
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
    origin: Origin | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    compiled_peak: int | None = None
    compiled_baseline_peak: int | None = None
    compilations: int = 0

    def save(self, path: str | Path) -> None:
        """Write the plan as JSON, whole or not at all; see `checkmate_tf.planning.plan_documents`.

        Raises:
            CheckmateError: the file can't be written.
        """
        write_whole(path, json.dumps(self.to_json()) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan that `save`, `checkmate-tf plan` or `checkmate-tf solve` wrote.

        Raises:
            CheckmateError: the file can't be read, is no plan, or its parts don't belong together.
        """
        document = read_json(path)
        try:
            return cls.from_json(document)
        except CheckmateError as error:
            raise CheckmateError(f"{path}: {error}") from error

    def to_json(self, with_graph: bool = True) -> dict[str, Any]:
        """The plan as an object that JSON can hold, with the graph or without."""
        solution = self.solution
        step = {
            **{name: getattr(self, name) for name in _OF_A_STEP},
            "notes": list(self.notes),
            "seconds": dict(self.seconds),
            "solution": {name: getattr(solution, name) for name in _OF_THE_SOLVER},
            "origin": None if self.origin is None else _origin_document(self.origin),
        }
        return {**document_of(self.graph, solution, self.budget, with_graph), "step": step}

    @classmethod
    def from_json(cls, document: Any, graph: ComputationGraph | None = None) -> Plan:
        """Read what `to_json` made; `graph` is that of the plan where the object has none.

        Raises:
            CheckmateError: it is no plan, or its parts don't belong together.
        """
        graph, solution, simulation = read_document(document, graph)
        assert solution.schedule is not None
        overhead = simulation.cost / graph.one_pass_cost - 1 if graph.one_pass_cost else 0.0
        budget = read(document, "budget", int)
        if document.get("step") is None:
            baseline = input_order_peak(graph)
            schedule = solution.schedule
            return cls(graph, schedule, budget, simulation.peak, baseline, overhead, solution)
        step = read(document, "step", dict)
        of_the_solver = read(step, "solution", dict)
        sizes = {name: read(of_the_solver, name, (int, type(None))) for name in _OF_THE_SOLVER}
        seconds = read(step, "seconds", dict)
        return cls(
            graph=graph,
            schedule=solution.schedule,
            budget=budget,
            overhead=overhead,
            solution=replace(solution, **sizes),
            notes=tuple(map(str, read(step, "notes", list))),
            origin=_origin(step.get("origin")),
            seconds={name: read(seconds, name, (int, float)) for name in seconds},
            **{name: read(step, name, kinds) for name, kinds in _OF_A_STEP.items()},
        )

    @property
    def cost_name(self) -> str:
        """What the cost model counts; only seconds are time."""
        return {"s": "time", "": "cost"}.get(self.graph.cost_unit, self.graph.cost_unit)

    def _asked(self) -> str:
        """The solver counts live values; what allocators waste is no part of its budget."""
        size = self.solution.budget
        return "" if size is None else f"asked for {format_bytes(size)} of live values"

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
        total, _, phases = in_words(self.seconds).partition(": ")
        rows = [
            ("budget", format_bytes(self.budget)),
            ("peak, unchanged step", f"{format_bytes(self.baseline_peak)} (predicted)"),
            ("", f"{format_bytes(unchanged)} (measured)" if unchanged else ""),
            ("", _compiled(self.compiled_baseline_peak)),
            ("peak, this plan", f"{format_bytes(self.predicted_peak)} (predicted)"),
            ("", f"{format_bytes(self.measured_peak)} (measured)" if self.measured_peak else ""),
            ("", _compiled(self.compiled_peak)),
            ("variables and inputs", format_bytes(self.graph.fixed_bytes)),
            ("recomputed", f"{recomputations} of {len(self.graph)} nodes"),
            (f"extra {self.cost_name}", f"{100 * self.overhead:.1f} % (predicted)"),
            ("solver", f"{self.solution.solver}, {self.solution.seconds:.1f} s"),
            ("", self._asked()),
            ("", self._distance()),
            ("planned in", total),
            ("", phases),
        ]
        lines = [f"{name:<22}{value}" for name, value in rows if value]
        notes = [fill(f"note: {note}", 79) for note in self.notes]
        return "\n".join([*lines, *notes, "", *by_layers(self.graph, self.schedule)])


_OF_A_STEP: dict[str, Any] = {
    "predicted_peak": int,
    "baseline_peak": int,
    "measured_peak": (int, type(None)),
    "measured_baseline_peak": (int, type(None)),
    "compiled_peak": (int, type(None)),
    "compiled_baseline_peak": (int, type(None)),
    "compilations": int,
}
"""Fields of a `Plan` in bytes, and what they may be."""


def _origin_document(origin: Origin) -> dict[str, Any]:
    return {**asdict(origin), "workspaces": list(origin.workspaces)}


def _origin(document: Any) -> Origin | None:
    if document is None:
        return None
    if not isinstance(document, dict):
        raise CheckmateError(f"origin is {document!r}; an object is expected")
    workspaces = read(document, "workspaces", list)
    if not all(type(each) is int and each >= 0 for each in workspaces):
        raise CheckmateError("origin: workspaces are not all sizes in bytes")
    return Origin(
        content=read(document, "content", str),
        workspaces=tuple(workspaces),
        resident=read(document, "resident", int),
        device=read(document, "device", str),
        tensorflow=read(document, "tensorflow", str),
    )


def _compiled(peak: int | None) -> str:
    return "" if peak is None else f"{format_bytes(peak)} (compiled)"


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
